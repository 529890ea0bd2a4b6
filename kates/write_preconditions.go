package kates

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/jsonform"
)

// precondition sets IfUID and IfResourceVersion in an object that is sent. The server takes them
// as preconditions.
func (w writeOptions) precondition(o *object, u *Unstructured) error {
	if err := w.agrees(u.GetUID(), u.GetResourceVersion()); err != nil {
		return o.conflict(err)
	}
	if w.uid != nil {
		u.SetUID(*w.uid)
	}
	if w.version != nil {
		u.SetResourceVersion(*w.version)
	}
	return nil
}

// agrees returns an error if what is sent has a UID or version that contradicts the options. One
// of the two conditions would be lost without an error.
func (w writeOptions) agrees(uid types.UID, version string) error {
	switch {
	case w.uid != nil && uid != "" && uid != *w.uid:
		return fmt.Errorf("what is sent is for the UID %q, the precondition for %q", uid, *w.uid)
	case w.version != nil && version != "" && version != *w.version:
		return fmt.Errorf("what is sent is for the resource version %q, the precondition for %q", version, *w.version)
	}
	return nil
}

// possible returns an error if no object can meet the preconditions. The server reads an empty
// UID, an empty version and "0" as no precondition.
func (w writeOptions) possible() error {
	switch {
	case w.uid != nil && *w.uid == "":
		return errors.New("no object has the empty UID of the precondition")
	case w.version != nil && strings.Trim(*w.version, "0") == "":
		return fmt.Errorf("no object has the resource version %q of the precondition", *w.version)
	}
	return nil
}

// preconditionPatch adds IfUID and IfResourceVersion to a patch: as part of the metadata, which
// the server compares, or as tests of a JSON patch.
func (w writeOptions) preconditionPatch(o *object, pt PatchType, data []byte) ([]byte, error) {
	if w.uid == nil && w.version == nil {
		return data, nil
	}
	if pt == types.JSONPatchType {
		return w.testsBefore(data)
	}
	patch := &Unstructured{}
	if err := jsonform.Decode(data, &patch.Object); err != nil {
		return nil, fmt.Errorf("a precondition on a patch that is no JSON object: %w", err)
	}
	if _, is := patch.Object["metadata"].(map[string]any); !is {
		delete(patch.Object, "metadata") // null, for example, could not hold the precondition
	}
	if err := w.precondition(o, patch); err != nil {
		return nil, err
	}
	return jsonform.Encode(patch.Object)
}

func (w writeOptions) testsBefore(data []byte) ([]byte, error) {
	var ops []any
	if err := jsonform.Decode(data, &ops); err != nil {
		return nil, fmt.Errorf("a JSON patch: %w", err)
	}
	var tests []any
	test := func(path, value string) {
		tests = append(tests, map[string]any{"op": "test", "path": path, "value": value})
	}
	if w.uid != nil {
		test("/metadata/uid", string(*w.uid))
	}
	if w.version != nil {
		test("/metadata/resourceVersion", *w.version)
	}
	return jsonform.Encode(append(tests, ops...))
}

// preconditionBody puts the options into a body that is posted.
func (w writeOptions) preconditionBody(o *object, u *Unstructured) error {
	if gvk := u.GroupVersionKind(); gvk.Group != "policy" || gvk.Kind != "Eviction" {
		return w.precondition(o, u)
	}
	own, _, _ := unstructured.NestedStringMap(u.Object, "deleteOptions", "preconditions")
	if err := w.agrees(types.UID(own["uid"]), own["resourceVersion"]); err != nil {
		return o.conflict(err)
	}
	set := func(value any, field ...string) error {
		return unstructured.SetNestedField(u.Object, value, append([]string{"deleteOptions"}, field...)...)
	}
	var errs []error
	if w.uid != nil {
		errs = append(errs, set(string(*w.uid), "preconditions", "uid"))
	}
	if w.version != nil {
		errs = append(errs, set(*w.version, "preconditions", "resourceVersion"))
	}
	if w.grace != nil {
		errs = append(errs, set(*w.grace, "gracePeriodSeconds"))
	}
	if w.propagation != nil {
		errs = append(errs, set(string(*w.propagation), "propagationPolicy"))
	}
	return errors.Join(errs...)
}

// preconditionError turns the answer to a patch or apply into a conflict if a precondition did
// not hold. For a UID, and for a JSON patch, the server answers "invalid". For a JSON patch it
// does not say what is wrong, so the object is read.
func (c *Client) preconditionError(ctx context.Context, o *object, w writeOptions, pt PatchType, err error) error {
	if (w.uid == nil && w.version == nil) || !apierrors.IsInvalid(err) {
		return err
	}
	failed := strings.Contains(err.Error(), "metadata.uid")
	if !failed && pt == types.JSONPatchType {
		now, getErr := c.core.get(ctx, o)
		failed = getErr == nil && w.met(now) != nil
	}
	if failed {
		return o.conflict(err)
	}
	return err
}

// met returns an error if an object does not meet the preconditions.
func (w writeOptions) met(o Object) error {
	switch {
	case w.uid != nil && *w.uid != o.GetUID():
		return fmt.Errorf("its UID is %q, not %q", o.GetUID(), *w.uid)
	case w.version != nil && *w.version != o.GetResourceVersion():
		return fmt.Errorf("its resource version is %q, not %q", o.GetResourceVersion(), *w.version)
	}
	return nil
}
