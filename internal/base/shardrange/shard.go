package shardrange

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Field is what of an object is hashed. The zero value is none.
type Field string

// The fields by which a server can shard.
const (
	UID       Field = "object.metadata.uid"
	Namespace Field = "object.metadata.namespace"
)

// Controller is the UID of the owner that controls an object. No server shards by it, and it may
// change: whoever has the object judges it ([Ranges.Has]).
const Controller Field = "controller"

// Shard is a share of the objects of a resource: those whose field has a hash in the ranges. The
// zero value is all objects. A Shard does not change.
type Shard struct {
	Field  Field
	Ranges Ranges
}

// Everything reports whether the shard has every object, so that nobody need be asked for a share.
func (s Shard) Everything() bool { return s.Field == "" || s.Ranges.Covers(All()) }

// Has reports whether an object of that namespace and UID belongs to the shard.
func (s Shard) Has(namespace, uid string) bool {
	switch s.Field {
	case UID:
		return s.Ranges.Has(Hash(uid))
	case Namespace:
		return s.Ranges.Has(Hash(namespace))
	}
	return true
}

// HasNamespace reports whether an object in that namespace can belong to the shard.
func (s Shard) HasNamespace(namespace string) bool {
	return s.Field != Namespace || s.Has(namespace, "")
}

// Covers reports whether the shard has each object that the other one has, whatever objects there
// are.
func (s Shard) Covers(other Shard) bool {
	return s.Everything() || s.Field == other.Field && s.Ranges.Covers(other.Ranges)
}

// String is the shard as a request asks for it: "" for everything, and where no server can judge.
// A request cannot ask for nothing. A shard without ranges therefore asks for the first hash
// alone, which [Shard.Has] refuses.
func (s Shard) String() string {
	if s.Field == Controller {
		return ""
	}
	return s.Key()
}

// Key tells shards apart: it is that of no other one, and "" for everything.
func (s Shard) Key() string {
	if s.Everything() {
		return ""
	}
	ranges := s.Ranges
	if len(ranges) == 0 {
		ranges = Ranges{{0, 0}}
	}
	terms := make([]string, len(ranges))
	for i, r := range ranges {
		end := "0x10000000000000000"
		if r.Last != math.MaxUint64 {
			end = fmt.Sprintf("0x%016x", r.Last+1)
		}
		terms[i] = fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", s.Field, r.First, end)
	}
	return strings.Join(terms, " || ")
}

// term is one range in a text. CEL has both kinds of quotes.
var term = regexp.MustCompile(
	`^\s*shardRange\(\s*([a-z.]+)\s*,\s*(?:'0x([0-9a-f]+)'|"0x([0-9a-f]+)")\s*,` +
		`\s*(?:'0x([0-9a-f]+)'|"0x([0-9a-f]+)")\s*\)\s*$`)

// Parse reads what [Shard.String] writes, and what a server may make of it.
func Parse(text string) (s Shard, err error) {
	var all []Range
	for _, t := range strings.Split(text, "||") {
		part := term.FindStringSubmatch(t)
		if part == nil {
			return Shard{}, fmt.Errorf("the shard selector %q: %q is no range, "+
				"as shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') is", text, t)
		}
		field := Field(part[1])
		switch {
		case field != UID && field != Namespace:
			return Shard{}, fmt.Errorf("the shard selector %q: the field %q is neither %s nor %s", text, field, UID, Namespace)
		case s.Field != "" && s.Field != field:
			return Shard{}, fmt.Errorf("the shard selector %q has two fields: all ranges must be of one", text)
		}
		r, err := rangeOf(part[2]+part[3], part[4]+part[5])
		if err != nil {
			return Shard{}, fmt.Errorf("the shard selector %q: %w", text, err)
		}
		s.Field, all = field, append(all, r)
	}
	s.Ranges = NewRanges(all...)
	return s, nil
}

// pastLast is the bound behind the last hash.
const pastLast = "10000000000000000"

// rangeOf reads the bounds of a range, the second of which is not in it.
func rangeOf(from, to string) (Range, error) {
	first, err := bound(from)
	if err != nil {
		return Range{}, err
	}
	if to == pastLast {
		return Range{first, math.MaxUint64}, nil
	}
	end, err := bound(to)
	switch {
	case err != nil:
		return Range{}, err
	case end <= first:
		return Range{}, fmt.Errorf("the range begins at 0x%s, and ends before that, at 0x%s", from, to)
	}
	return Range{first, end - 1}, nil
}

func bound(digits string) (uint64, error) {
	if len(digits) != 16 {
		return 0, fmt.Errorf("the bound 0x%s has %d digits, and not 16", digits, len(digits))
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("the bound 0x%s: %w", digits, err)
	}
	return n, nil
}
