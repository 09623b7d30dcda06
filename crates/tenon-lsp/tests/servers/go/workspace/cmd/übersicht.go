// Command cmd prints a total.
package main

import "example.com/shop/price"

func main() {
	tea := price.Item{Name: "grüner Tee 🍵", Cost: 300}
	println("Größe 🍵", price.Total([]price.Priced{tea}))
}
