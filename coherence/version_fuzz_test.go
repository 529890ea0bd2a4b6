package coherence

import (
	"math/big"
	"testing"
)

func FuzzVersionsAreOrderedAsNumbers(f *testing.F) {
	for _, versions := range [][2]string{{"9", "10"}, {"", "0"}, {"0", "1"}, {"-1", "1"}, {"01", "1"}, {"99999999999999999999999", "1"}, {"٣", "3"}, {"1\n", "1"}} {
		f.Add(versions[0], versions[1])
	}
	number := func(s string) *big.Int {
		n, ok := new(big.Int).SetString(s, 10)
		if !ok || !Comparable(s) {
			return nil
		}
		return n
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := number(a), number(b)
		if Comparable(a) && (x == nil || x.Sign() <= 0 || x.String() != a) {
			t.Fatalf("%q is a version", a)
		}
		want := x != nil && (y == nil || x.Cmp(y) > 0)
		if Newer(a, b) != want || Newer(a, b) && Newer(b, a) || Newer(a, a) {
			t.Fatalf("%q is newer than %q: %v", a, b, Newer(a, b))
		}
		if n := Newest(a, b); n != a && n != b || Newer(a, n) || Newer(b, n) {
			t.Fatalf("the newest of %q and %q is %q", a, b, n)
		}
	})
}
