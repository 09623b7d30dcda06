import { rounded } from "../src/price";

export const roundedUp = rounded(1.7);
