import { total } from "@shop/core";

export const cliTotal = total([2]);
