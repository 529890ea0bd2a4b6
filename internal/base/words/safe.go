//go:build kates_safe

package words

import "reflect"

// OK is false: nobody calls the functions of this package.
const OK = false

// Word has nothing in this build.
type Word struct{}

const unsafe = "words: a build with the tag kates_safe has none"

// These functions exist so that what calls them where OK is true compiles.

func Of(reflect.Value) Word                              { panic(unsafe) }
func Slice(reflect.Value) []Word                         { panic(unsafe) }
func SliceOf(reflect.Type, []Word) reflect.Value         { panic(unsafe) }
func Map[K comparable](reflect.Value) map[K]Word         { panic(unsafe) }
func CloneMap[K comparable](reflect.Value) reflect.Value { panic(unsafe) }
func As[I any](I, Word) I                                { panic(unsafe) }
