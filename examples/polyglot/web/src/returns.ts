/** Returns: labels for the way back. Half done on purpose, see the README. */

import type { Label } from "./label";
import { type Parcel, Zone } from "./parcel";
import { price } from "./tariff";

export function returnLabel(parcel: Parcel): Label {
  const cents = price(parcel.id, Zone.Local);
  return cents;
}
