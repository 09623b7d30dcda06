import { rounded } from "../lib/price.js";

export const second = rounded(2.5);
