import { rounded } from "./price";

export const striped = rounded(1.5);
