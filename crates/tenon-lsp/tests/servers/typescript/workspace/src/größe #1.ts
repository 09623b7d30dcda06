import { cheapest, Item } from "./model.js";

const emoji = "😀👩‍👩‍👧"; const item = new Item("é", 1);
export const text = `é😀 ${item.total(2)} ${cheapest([item])?.name} ${emoji}`;
