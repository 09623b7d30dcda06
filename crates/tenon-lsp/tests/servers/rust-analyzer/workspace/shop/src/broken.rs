//! Two errors.

use price::Item;

pub fn wrong() -> u32 {
    let item = Item { cents: "three" };
    item.cost()
}
