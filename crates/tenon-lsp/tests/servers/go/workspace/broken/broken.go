// Package broken does not compile.
package broken

import "example.com/shop/price"

// Wrong is not a number.
var Wrong int = "text"

// Sum has an argument too many.
var Sum = price.Total(nil, nil)
