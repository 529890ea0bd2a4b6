package project

import (
	"reflect"
	"strings"
)

// nearest returns the field of a struct whose name in JSON is most like a name that it has not; ""
// if none is.
func nearest(t reflect.Type, name string) (near string) {
	least := len(name)/3 + 2
	for _, f := range flat(t, 0) {
		if d := distance(strings.ToLower(name), strings.ToLower(f.name)); d < least {
			near, least = f.name, d
		}
	}
	return near
}

// distance is how many letters have to be put in, left out or replaced to make one text of
// another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
