// Package price computes prices.
package price

// Priced has a price.
type Priced interface {
	Cents() int
}

// Item is what is sold.
type Item struct {
	Name string
	Cost int
}

// Cents is the price of one item.
func (item Item) Cents() int {
	return item.Cost
}

// Total adds the prices of all that is sold.
func Total(sold []Priced) int {
	sum := 0
	for _, one := range sold {
		sum += one.Cents()
	}
	return sum
}
