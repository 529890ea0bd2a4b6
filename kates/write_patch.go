package kates

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/jsonform"
)

// preconditionPatch adds IfUID and IfResourceVersion to a patch: as part of the metadata, which
// the server compares, or as tests of a JSON patch.
func (w writeOptions) preconditionPatch(o *object, pt PatchType, data []byte) ([]byte, error) {
	if w.uid == nil && w.version == nil {
		return data, nil
	}
	if pt == types.JSONPatchType {
		return w.testsBefore(data)
	}
	patch := map[string]any{}
	if err := jsonform.Decode(data, &patch); err != nil {
		return nil, fmt.Errorf("a precondition on a patch that is no JSON object: %w", err)
	}
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	uid, _ := meta["uid"].(string)
	version, _ := meta["resourceVersion"].(string)
	if err := w.agrees(types.UID(uid), version); err != nil {
		return nil, o.conflict(err)
	}
	if w.uid != nil {
		meta["uid"] = string(*w.uid)
	}
	if w.version != nil {
		meta["resourceVersion"] = *w.version
	}
	return jsonform.Encode(patch)
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

// preconditionError turns the answer to a patch or apply into a conflict if a precondition did
// not hold. For a UID, and for a JSON patch, the server answers "invalid". For a JSON patch it
// does not say what is wrong, so the object is read.
func (c *Client) preconditionError(ctx context.Context, o *object, w writeOptions, pt PatchType, err error) error {
	if (w.uid == nil && w.version == nil) || !apierrors.IsInvalid(err) {
		return err
	}
	failed := strings.Contains(err.Error(), "metadata.uid")
	if !failed && pt == types.JSONPatchType {
		now, getErr := c.in(o.resource, o.GetNamespace()).Get(ctx, o.GetName(), getOptions)
		failed = getErr == nil && !w.holds(now)
	}
	if failed {
		return o.conflict(err)
	}
	return err
}

// holds reports whether an object meets the preconditions.
func (w writeOptions) holds(u *Unstructured) bool {
	return (w.uid == nil || u.GetUID() == *w.uid) && (w.version == nil || u.GetResourceVersion() == *w.version)
}

// isNil reports whether v is nil, or a nil pointer or map in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return r.IsNil()
	}
	return false
}
