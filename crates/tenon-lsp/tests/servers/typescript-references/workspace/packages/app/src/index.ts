import { total } from "../../core/src/index";

export const appTotal = total([1]);
