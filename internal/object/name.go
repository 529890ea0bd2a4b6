package object

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

var objectName = regexp.MustCompile(`\b(github\.com/kates-go/kates/internal/)?object\.Object\b`)

// TypeName returns the name of a type for errors and logs. Programs know [Object] as kates.Object:
// that is its name here.
func TypeName(t reflect.Type) string {
	return objectName.ReplaceAllString(fmt.Sprint(t), "kates.Object")
}

// Innermost returns what the slices, arrays, maps, channels and pointers of a type are made of.
func Innermost(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Array, reflect.Chan, reflect.Map, reflect.Pointer, reflect.Slice:
			t = t.Elem()
		default:
			return t
		}
	}
}

// briefMost is how much of a text by the server is in an error.
const briefMost = 128

// Brief shortens a text by the server: errors stay in memory, and go to logs.
func Brief(text string) string {
	if len(text) > briefMost {
		return text[:briefMost] + "…"
	}
	return text
}

// Ambiguous reports whether a name may stand for several names of the server.
func Ambiguous(key Key) bool {
	const replaced = string(utf8.RuneError)
	return strings.Contains(key.Name, replaced) || strings.Contains(key.Namespace, replaced) || !Sayable(key)
}

// Sayable reports whether JSON can say a name.
func Sayable(key Key) bool {
	return utf8.ValidString(key.Name) && utf8.ValidString(key.Namespace)
}
