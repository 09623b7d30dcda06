import { Item } from "./model.js";

const item: Item = "no item";
var unused = item.cost;
