import { rounded } from "./lib/price.js";

export const first = rounded(1.5);
