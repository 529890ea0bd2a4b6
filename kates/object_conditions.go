package kates

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/conditions"
	"github.com/kates-go/kates/internal/jsonform"
)

// Condition is one aspect of an object's state, in its status.conditions.
type Condition = metav1.Condition

// SetCondition sets a condition in the status of an object, which it modifies, and reports
// whether that changed anything. The object is the caller's own: a pointer to a Go type with
// Status.Conditions of []metav1.Condition, an *[Unstructured], or a map[string]any. A condition
// of that type is changed in its place, others stay. The transition time changes only with the
// status: to the condition's own, or to now. A zero observedGeneration becomes the object's
// generation.
//
// A condition that was set for a newer generation of the object stays, without an error: a
// statement about an older one is out of date. It is an error, and nothing is modified, if the
// object cannot have such conditions, or if the API would reject the condition. The type is a
// qualified name, the status True, False or Unknown, and the reason a CamelCase word. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
// and KEP-1623.
func SetCondition(object any, condition Condition) (changed bool, err error) {
	return conditions.Set(object, condition)
}

// FindCondition returns a copy of an object's condition of that type. It is nil if the object has
// none, or none that can be read. The object is as for [SetCondition], but may be shared.
func FindCondition(object any, conditionType string) *Condition {
	return conditions.Find(object, conditionType)
}

// SetConditions writes conditions into the status of the object, as [SetCondition] does, through
// its status subresource: read, modify, write, and again after a conflict (see [ModifyStatus]).
// It starts from the newest version that the client knows, also that of a watch in a Go type if
// its conditions are of []metav1.Condition. Conditions of other types, and the rest of the
// status, stay as they are. If nothing changes, nothing is sent.
//
// The conditions are about the object as given. A zero observedGeneration becomes its generation,
// though there may be a newer one by now. If it has a UID, another object of its name is a
// conflict ([IsConflict]). It is not modified. See [Client.Create] for what holds for every
// write.
func (c *Client) SetConditions(ctx context.Context, object any, set []Condition, opts ...WriteOption) error {
	about, err := c.looked(object, opts)
	if err == nil {
		err = conditions.Check(set...)
	}
	if err != nil {
		return fmt.Errorf("set conditions: %w", err)
	}
	stated := slices.Clone(set)
	for i := range stated {
		if stated[i].ObservedGeneration == 0 {
			stated[i].ObservedGeneration = about.object.GetGeneration()
		}
	}
	m := &modification{op: opModifyStatus, shows: conditions.Shown}
	_, err = modify(ctx, c, m, about.object, func(u *Unstructured) error {
		for _, condition := range stated {
			if _, err := conditions.SetUntyped(u.Object, condition); err != nil {
				return fmt.Errorf("set conditions of %s: %w", jsonform.Describe(u), err)
			}
		}
		return nil
	}, about.options)
	return err
}
