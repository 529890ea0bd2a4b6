// Package conditions reads and sets the status.conditions of objects of any form, and says from an
// object's status whether it is as its spec wants it ([StatusOf]). It knows no client.
package conditions

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/jsonform"
)

// Condition is one aspect of an object's state.
type Condition = metav1.Condition

// Set sets a condition of an object, as kates.SetCondition documents it.
func Set(object any, condition Condition) (bool, error) {
	if err := Check(condition); err != nil {
		return false, err
	}
	if content, ok := Untyped(object); ok {
		if content == nil {
			return false, errors.New("set a condition: the object is nil")
		}
		if condition.ObservedGeneration == 0 {
			condition.ObservedGeneration = (&unstructured.Unstructured{Object: content}).GetGeneration()
		}
		return SetUntyped(content, condition)
	}
	conditions, err := typed(object)
	if err != nil {
		return false, fmt.Errorf("set a condition: %w", err)
	}
	if o, ok := object.(metav1.Object); ok && condition.ObservedGeneration == 0 {
		condition.ObservedGeneration = o.GetGeneration()
	}
	if outdated(meta.FindStatusCondition(*conditions, condition.Type), condition) {
		return false, nil
	}
	return meta.SetStatusCondition(conditions, condition), nil
}

// Find returns a copy of an object's condition of a type, as kates.FindCondition documents it.
func Find(object any, conditionType string) *Condition {
	if content, ok := Untyped(object); ok {
		elements, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
		list, _ := elements.([]any)
		for _, element := range list {
			if c, err := read(element); err == nil && c.Type == conditionType {
				return &c
			}
		}
		return nil
	}
	conditions, err := typed(object)
	if err != nil {
		return nil
	}
	return meta.FindStatusCondition(slices.Clone(*conditions), conditionType)
}

// outdated reports whether a condition is about an older generation than the existing one.
func outdated(there *Condition, condition Condition) bool {
	return there != nil && condition.ObservedGeneration > 0 && condition.ObservedGeneration < there.ObservedGeneration
}

// SetUntyped sets a condition and keeps the unknown fields of its element.
func SetUntyped(content map[string]any, condition Condition) (bool, error) {
	status, ok := content["status"].(map[string]any)
	if !ok && content["status"] != nil {
		return false, errors.New("set a condition: its status is not an object")
	}
	elements, ok := status["conditions"].([]any)
	if !ok && status["conditions"] != nil {
		return false, errors.New("set a condition: its status.conditions are not a list")
	}
	at := slices.IndexFunc(elements, func(e any) bool {
		m, _ := e.(map[string]any)
		return m["type"] == condition.Type
	})
	var there []Condition
	if at >= 0 {
		c, err := read(elements[at])
		if err != nil {
			return false, fmt.Errorf("set a condition: its %s cannot be read: %w", condition.Type, err)
		}
		if there = []Condition{c}; outdated(&c, condition) {
			return false, nil
		}
	}
	if !meta.SetStatusCondition(&there, condition) {
		return false, nil
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&there[0])
	if err != nil {
		return false, err
	}
	elements = slices.Clone(elements)
	if at < 0 {
		elements = append(elements, written)
	} else {
		element := maps.Clone(elements[at].(map[string]any))
		delete(element, "observedGeneration") // written omits it if it is zero
		maps.Copy(element, written)
		elements[at] = element
	}
	if status == nil {
		status = map[string]any{}
		content["status"] = status
	}
	status["conditions"] = elements
	return true, nil
}

// typed returns the conditions in an object of a Go type.
func typed(object any) (*[]Condition, error) {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("a %T is no pointer to an object", object)
	}
	status := v.Elem().FieldByName("Status")
	if status.Kind() == reflect.Pointer && !status.IsNil() {
		status = status.Elem()
	}
	if status.Kind() == reflect.Struct {
		if conditions := status.FieldByName("Conditions"); conditions.IsValid() && conditions.CanSet() {
			if list, ok := conditions.Addr().Interface().(*[]Condition); ok {
				return list, nil
			}
		}
	}
	return nil, fmt.Errorf("a %T has no Status.Conditions of []metav1.Condition", object)
}

// Shown reports whether the type of a value, a pointer to a struct, shows conditions as its JSON
// has them: all that they say is in its status.conditions.
func Shown(value any, set []Condition) bool {
	full := slices.Clone(set)
	for i := range full {
		full[i].LastTransitionTime = metav1.NewTime(time.Unix(1, 0).UTC())
		if full[i].Message == "" {
			full[i].Message = "shown"
		}
	}
	u, err := jsonform.ToUnstructured(nil, map[string]any{"status": map[string]any{"conditions": full}})
	if err != nil {
		return false
	}
	v := reflect.New(reflect.TypeOf(value).Elem()).Interface()
	if jsonform.Fill(v, u) != nil {
		return false
	}
	shown, err := jsonform.ToUnstructured(nil, v)
	return err == nil && !slices.ContainsFunc(full, func(c Condition) bool {
		return !reflect.DeepEqual(Find(shown, c.Type), Find(u, c.Type))
	})
}

// Observe reports whether conditions of an object's Go type have an observedGeneration. Those of
// many built-in kinds have none (Deployment, Node, Job). It is true if the type says nothing.
func Observe(object reflect.Type) bool {
	t := object
	for _, name := range []string{"Status", "Conditions"} {
		if t = pointedTo(t); t.Kind() != reflect.Struct {
			return true
		}
		field, ok := t.FieldByName(name)
		if !ok {
			return true
		}
		t = field.Type
	}
	if t.Kind() != reflect.Slice || pointedTo(t.Elem()).Kind() != reflect.Struct {
		return true
	}
	return slices.ContainsFunc(reflect.VisibleFields(pointedTo(t.Elem())), func(f reflect.StructField) bool {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name == "observedGeneration"
	})
}

func pointedTo(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// Untyped returns the content of an untyped object, and whether it is one.
func Untyped(object any) (map[string]any, bool) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		if o == nil {
			return nil, true
		}
		return o.Object, true
	case map[string]any:
		return o, true
	case *map[string]any:
		if o == nil {
			return nil, true
		}
		return *o, true
	}
	return nil, false
}

// read decodes an element of status.conditions.
func read(element any) (c Condition, err error) {
	m, ok := element.(map[string]any)
	if !ok {
		return c, errors.New("it is not an object")
	}
	return c, asjson.Decode(m, &c)
}

// Check returns an error for what the API would reject. The transition time is filled in later.
func Check(conditions ...Condition) error {
	checked := slices.Clone(conditions)
	for i := range checked {
		checked[i].LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
	}
	return metav1validation.ValidateConditions(checked, field.NewPath("conditions")).ToAggregate()
}
