package kates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/jsonform"
)

// Condition is one aspect of an object's state, in its status.conditions.
type Condition = metav1.Condition

// SetCondition sets a condition in the status of an object, which it modifies, and reports whether that changed
// anything. The object is the caller's own: a pointer to a Go type with Status.Conditions of []metav1.Condition,
// an *[Unstructured], or a map[string]any. A condition of that type is changed in its place, others stay as they
// are. The transition time changes with the status and not otherwise: to the condition's, or to now. An
// observedGeneration that is zero is the object's generation.
//
// A condition that was set for a newer generation of the object stays, without an error: what is said about an
// older one is out of date. It is an error, and nothing is modified, if the object can have no such conditions, or
// the condition is not one that the API takes (the type a qualified name, the status True, False or Unknown, the
// reason a CamelCase word). See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
// and KEP-1623.
func SetCondition(object any, condition Condition) (changed bool, err error) {
	if err := checkConditions(condition); err != nil {
		return false, err
	}
	return setCondition(object, condition)
}

// FindCondition returns a copy of an object's condition of that type, nil if it has none, or none that can be
// read. The object is as for [SetCondition], but may be shared.
func FindCondition(object any, conditionType string) *Condition {
	if content, ok := untypedContent(object); ok {
		for _, element := range conditionsOf(content) {
			if c, err := readCondition(element); err == nil && c.Type == conditionType {
				return &c
			}
		}
		return nil
	}
	conditions, err := typedConditions(object)
	if err != nil {
		return nil
	}
	return meta.FindStatusCondition(slices.Clone(*conditions), conditionType)
}

// SetConditions writes conditions into the status of the object, as [SetCondition] does, through its status
// subresource: read, modify, write, from the newest known version (of a watch in a Go type, if its conditions
// are of []metav1.Condition), and again after a conflict (see [ModifyStatus]). Conditions of other types, and the rest of the status, stay as they are. Nothing is sent where
// nothing changes.
//
// The object is what the conditions are about, as it was looked at: an observedGeneration that is zero is its
// generation, though there may be a newer one by now; and with its UID, another object of its name is a conflict
// ([IsConflict]). It is not modified. See [Client.Create] for what holds for every write.
func (c *Client) SetConditions(ctx context.Context, object any, conditions []Condition, opts ...WriteOption) error {
	about, err := c.looked(object, opts)
	if err == nil {
		err = checkConditions(conditions...)
	}
	if err != nil {
		return fmt.Errorf("set conditions: %w", err)
	}
	stated := slices.Clone(conditions)
	for i := range stated {
		if stated[i].ObservedGeneration == 0 {
			stated[i].ObservedGeneration = about.object.GetGeneration()
		}
	}
	m := &modification{op: opModifyStatus, shows: showsConditions}
	_, err = modify(ctx, c, m, about.object, func(u *Unstructured) error {
		for _, condition := range stated {
			if _, err := setUntyped(u.Object, condition); err != nil {
				return fmt.Errorf("set conditions of %s: %w", jsonform.Describe(u), err)
			}
		}
		return nil
	}, about.options)
	return err
}

func setCondition(object any, condition Condition) (bool, error) {
	if content, ok := untypedContent(object); ok {
		if content == nil {
			return false, errors.New("set a condition: the object is nil")
		}
		if condition.ObservedGeneration == 0 {
			condition.ObservedGeneration = (&Unstructured{Object: content}).GetGeneration()
		}
		return setUntyped(content, condition)
	}
	conditions, err := typedConditions(object)
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

// outdated reports whether a condition is about an older generation than the one that is there.
func outdated(there *Condition, condition Condition) bool {
	return there != nil && condition.ObservedGeneration > 0 && condition.ObservedGeneration < there.ObservedGeneration
}

// setUntyped sets a condition and keeps what else the element has.
func setUntyped(content map[string]any, condition Condition) (bool, error) {
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
		c, err := readCondition(elements[at])
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
		delete(element, "observedGeneration") // which is left out where it is zero
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

// typedConditions are the conditions in an object of a Go type.
func typedConditions(object any) (*[]Condition, error) {
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

// showsConditions reports whether the Go type of an object has all of its conditions: in JSON too they are its
// status.conditions.
func showsConditions(object accumulator.Object) bool {
	v := reflect.New(reflect.TypeOf(object).Elem())
	status, ok := fieldOf(v.Elem(), "Status")
	if ok && status.Kind() == reflect.Pointer {
		status.Set(reflect.New(status.Type().Elem()))
		status = status.Elem()
	}
	if _, has := fieldOf(status, "Conditions"); !ok || !has {
		return false
	}
	conditions, err := typedConditions(v.Interface())
	if err != nil {
		return false
	}
	*conditions = []Condition{{Type: "Shown"}}
	u, err := jsonform.ToUnstructured(nil, v.Interface())
	return err == nil && FindCondition(u, "Shown") != nil
}

// fieldOf is a field of a struct itself, which an embedded pointer to one that is nil cannot keep from being reached.
func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field, ok := v.Type().FieldByName(name)
	if !ok || len(field.Index) != 1 || !field.IsExported() {
		return reflect.Value{}, false
	}
	return v.FieldByIndex(field.Index), true
}

// untypedContent is the content of an untyped object, and whether it is one.
func untypedContent(object any) (map[string]any, bool) {
	switch o := object.(type) {
	case *Unstructured:
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

func conditionsOf(content map[string]any) []any {
	status, _ := content["status"].(map[string]any)
	elements, _ := status["conditions"].([]any)
	return elements
}

func readCondition(element any) (c Condition, err error) {
	m, ok := element.(map[string]any)
	if !ok {
		return c, errors.New("it is not an object")
	}
	return c, runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c)
}

// checkConditions says what the API would not take. The transition time is filled in later.
func checkConditions(conditions ...Condition) error {
	checked := slices.Clone(conditions)
	for i := range checked {
		checked[i].LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
	}
	if err := metav1validation.ValidateConditions(checked, field.NewPath("conditions")).ToAggregate(); err != nil {
		return err
	}
	return nil
}
