import { total } from "../../core/src/index";

export const cliTotal = total([2]);
