import { total } from "@shop/core";

export const appTotal = total([1]);
