package kates

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/wire"
	"github.com/kates-go/kates/snapshot"
)

// formOf returns the form in which a field's objects are watched. It depends on the type of the
// elements; kind is the kind that this type fixes, if it does.
func (c *core) formOf(field reflect.Type, kind schema.GroupVersionKind) stream.Form {
	if elementOf(field) == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return stream.Metadata
	}
	if !c.untyped && !kind.Empty() {
		if _, ok := wire.TypeOf(c.scheme, kind); ok {
			return stream.Typed
		}
	}
	return stream.Whole
}

// elementOf is the type of a field's elements, nil if it is neither a slice, nor a map, nor a
// Lookup.
func elementOf(field reflect.Type) reflect.Type {
	elem := snapshot.LookupElement(field)
	if elem == nil {
		if field.Kind() != reflect.Slice && field.Kind() != reflect.Map {
			return nil
		}
		elem = field.Elem()
	}
	if elem.Kind() == reflect.Pointer {
		return elem.Elem()
	}
	return elem
}
