package files

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
)

// TypeOf names a Go type by all that decides what its values are packed into: names, types and
// tags of its fields, and of those that they have. If a type has JSON of its own, and is not one
// of Kubernetes' or Go's, its code decides, too: then the name is that of this very program.
func TypeOf(t reflect.Type) string {
	d := &describer{seen: make(map[reflect.Type]int)}
	d.describe(t)
	if d.own {
		d.text.WriteString(program())
	}
	sum := sha256.Sum256([]byte(d.text.String()))
	return hex.EncodeToString(sum[:])
}

type describer struct {
	text strings.Builder
	seen map[reflect.Type]int
	own  bool // a type has code of its own
}

func (d *describer) describe(t reflect.Type) {
	if n, met := d.seen[t]; met {
		fmt.Fprintf(&d.text, "#%d;", n)
		return
	}
	d.seen[t] = len(d.seen)
	fmt.Fprintf(&d.text, "%s.%s:%s;", t.PkgPath(), t.Name(), t.Kind())
	if hasCode(t) {
		if known(t) {
			return // what is in it is its own affair, and stays as it is, or the format changes
		}
		d.own = true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		d.describe(t.Elem())
	case reflect.Array:
		fmt.Fprintf(&d.text, "%d;", t.Len())
		d.describe(t.Elem())
	case reflect.Map:
		d.describe(t.Key())
		d.describe(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(&d.text, "%s %q %t;", f.Name, string(f.Tag), f.Anonymous)
			d.describe(f.Type)
		}
		d.text.WriteString("end;")
	}
}

// known reports whether a type is Kubernetes' or Go's.
func known(t reflect.Type) bool {
	switch path, _, _ := strings.Cut(t.PkgPath(), "/"); path {
	case "k8s.io", "time", "encoding", "math", "net":
		return t.Kind() != reflect.Interface
	}
	return false
}

// hasCode reports whether a type has JSON of its own. What an interface holds may have.
func hasCode(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return t.NumMethod() > 0
	case reflect.Pointer:
		return false // what it points to is asked
	}
	for _, code := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(code) || reflect.PointerTo(t).Implements(code) {
			return true
		}
	}
	return false
}

// program names this program: the hash of its file, or, if that cannot be read, what no other
// process has.
var program = sync.OnceValue(func() string {
	if path, err := os.Executable(); err == nil {
		if f, err := os.Open(path); err == nil {
			h := sha256.New()
			_, err := io.Copy(h, f)
			_ = f.Close() // it was read
			if err == nil {
				return hex.EncodeToString(h.Sum(nil))
			}
		}
	}
	return NewID()
})
