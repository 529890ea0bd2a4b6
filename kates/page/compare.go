package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// Bounds of what is shown of an object.
const (
	maxFields = 2000
	maxText   = 2000 // bytes
)

// Version is an object in one of the places where it is.
type Version struct {
	// Title: "snapshot", "watch" or "with own writes".
	Title string `json:"title"`
	// Is the object there, and why not if it should be.
	Is  bool   `json:"is"`
	Why string `json:"why,omitempty"`

	content content
}

// Field is a field of an object, in each of its versions.
type Field struct {
	Path string `json:"path"`
	// Values by version; nil where the version does not have the field.
	Values  []*string `json:"values"`
	Differs bool      `json:"differs"`
}

// versionOf is an object as it is somewhere; nil: it is not there.
func (p *Page) versionOf(title string, o kates.Object, isSecret bool) Version {
	v := Version{Title: title}
	if absent(o) {
		return v
	}
	c, err := p.contentOf(o, isSecret)
	if err != nil {
		v.Why = err.Error()
		return v
	}
	v.Is, v.content = true, c
	return v
}

// fieldsOf compares versions of an object. Fields of those that are there are listed once, and
// some are left out if there are too many.
func fieldsOf(versions []Version, onlyDiffering bool) (fields []Field, differing, all int) {
	paths, base := map[string]bool{}, 0
	for base < len(versions)-1 && versions[base].Why != "" {
		base++ // what is left out is not compared
	}
	for _, v := range versions {
		for path := range v.content.shown {
			paths[path] = true
		}
	}
	for path := range paths {
		f := Field{Path: path}
		for i, v := range versions {
			f.Values = append(f.Values, valueOf(v, path))
			if v.Is && versions[base].Is && i > base {
				f.Differs = f.Differs || !sameField(versions[base], v, path)
			} else if i > base && v.Is != versions[base].Is && v.Why == "" && versions[base].Why == "" {
				f.Differs = true
			}
		}
		if f.Differs {
			differing++
		}
		if f.Differs || !onlyDiffering {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b Field) int { return comparePaths(a.Path, b.Path) })
	all = len(paths)
	if len(fields) > maxFields {
		fields = fields[:maxFields]
	}
	return fields, differing, all
}

// sameField compares what is there, and not what is shown of it: it may be hidden.
func sameField(a, b Version, path string) bool {
	x, inA := a.content.whole[path]
	y, inB := b.content.whole[path]
	return x == y && inA == inB
}

func valueOf(v Version, path string) *string {
	text, is := v.content.shown[path]
	if !is {
		return nil
	}
	if len(text) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
	}
	return &text
}

// comparePaths has what says which object it is first, then the rest of the metadata, then the
// rest by name. The elements of a list are in order.
func comparePaths(a, b string) int {
	return cmp.Or(cmp.Compare(placeOf(a), placeOf(b)), compareNumbered(a, b))
}

func placeOf(path string) int {
	switch {
	case path == "apiVersion" || path == "kind":
		return 0
	case strings.HasPrefix(path, "metadata."):
		return 1
	}
	return 2
}

// compareNumbered compares texts, and the numbers in them as numbers.
func compareNumbered(a, b string) int {
	for a != "" && b != "" {
		x, restA, isA := number(a)
		y, restB, isB := number(b)
		if isA && isB {
			if x != y {
				return cmp.Compare(x, y)
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func number(s string) (n int, rest string, is bool) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.Atoi(s[:digits])
	return n, s[digits:], err == nil
}

// absent reports whether there is no object: nil, or a nil pointer in the interface.
func absent(o kates.Object) bool { return o == nil || isNil(o) }

// scrub hides in a text what is hidden in any of the versions.
func scrub(text string, versions []Version) string {
	for _, v := range versions {
		if len(v.content.hidden) > 0 {
			text = replacerOf(v.content.hidden).Replace(text)
		}
	}
	return text
}

// queryOf returns a query of a watch by name.
func queryOf(w *inspect.Watch, name string) *inspect.Query {
	for _, q := range w.Queries {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// secretQuery reports whether a query is of Secrets. What it reads decides; where that is not
// known, it might be.
func secretQuery(r *inspect.Report, q *inspect.Query) bool {
	known := false
	for _, id := range q.Streams {
		for _, s := range r.Streams {
			if s.ID == id {
				if isSecrets(s.Resource) {
					return true
				}
				known = true
			}
		}
	}
	return !known && mayBeSecrets(q.Kind)
}

func mayBeSecrets(kind string) bool {
	return kind == "" || strings.Contains(strings.ToLower(kind), "secret")
}
