// Package items has all kinds of declarations.
package items

import "fmt"

// Max is the limit.
const Max = 10

const (
	A = iota // first
	B
	c, d = 1, 2
)

var global, other = 1, "x"

var (
	// cache keeps results.
	cache map[string]int
)

// Server serves.
type Server struct {
	*Base
	pkg.Embedded
	Generic[int]
	Name, Alias string
	handler     func(int) error `json:"-"`
}

type Reader interface {
	io.Closer
	fmt.Stringer
	// Read reads.
	Read(p []byte) (n int, err error)
}

type Number interface{ ~int | ~float64 }

type (
	ID    int
	Pairs = map[string]ID
	List[T any] struct{ items []T }
)

// NewServer makes one.
func NewServer[T any](name string, opts ...Option) (*Server, error) {
	local := func() {}
	type inner struct{ x int }
	const hidden = 1
	return nil, nil
}

// Run runs.
func (s *Server) Run(ctx context.Context) error { return nil }
func (s Server) Value() int                     { return 1 }
func (l *List[T]) Push(item T)                  { l.items = append(l.items, item) }
func (List[T]) Len() int                        { return 0 }
func external(x int) int

func TestServer(t *testing.T) {}
func Testify()                {}
