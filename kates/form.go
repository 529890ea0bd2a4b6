package kates

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/accumulator"
)

// formOf is the form in which the objects of a field are watched: that of its elements' type.
func formOf(field reflect.Type) accumulator.Form {
	if elementOf(field) == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return accumulator.Metadata
	}
	return accumulator.Whole
}

// elementOf is the type of what a field has of each object, nil if it is neither a slice nor a map.
func elementOf(field reflect.Type) reflect.Type {
	if field.Kind() != reflect.Slice && field.Kind() != reflect.Map {
		return nil
	}
	if elem := field.Elem(); elem.Kind() != reflect.Pointer {
		return elem
	}
	return field.Elem().Elem()
}
