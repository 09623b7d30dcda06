/** Prints labels for two sample parcels. */

import { labelFor } from "./label";
import type { Parcel } from "./parcel";

const samples: readonly Parcel[] = [
  { id: "P-1", grams: 800, postcode: "75011", fragile: true },
  { id: "P-2", grams: 22_500, postcode: "97400", fragile: false },
];

for (const parcel of samples) {
  const label = labelFor(parcel, "75001");
  console.log(`${label.heading}: ${(label.cents / 100).toFixed(2)}`);
}
