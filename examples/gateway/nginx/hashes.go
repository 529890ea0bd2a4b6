package nginx

import (
	"fmt"
	"strings"
)

// BucketBytes is what a bucket of nginx' tables of hosts can hold, at most. If one would have more,
// nginx refuses the configuration, and names no line.
const BucketBytes = 65536 - 128

// hostBuckets is how many buckets a table has if its hosts fit into no smaller one.
const hostBuckets = 16384

// Buckets returns what a host takes in nginx' tables of hosts: bytes by bucket and text. The same
// text in the same bucket takes them once. A wildcard is in a table for each of its labels.
func Buckets(host string) map[[2]string]int {
	all := map[[2]string]int{}
	add := func(table, text string) {
		var hash uint64
		for _, b := range []byte(text) {
			hash = hash*31 + uint64(b)
		}
		all[[2]string{fmt.Sprint(table, " ", hash%hostBuckets), text}] = 8 + (len(text)+2+7)/8*8
	}
	suffix, wild := strings.CutPrefix(host, "*.")
	if !wild {
		add("", host)
		return all
	}
	for suffix != "" {
		label, rest, _ := strings.Cut(suffix, ".")
		add("*."+rest, label)
		suffix = rest
	}
	return all
}
