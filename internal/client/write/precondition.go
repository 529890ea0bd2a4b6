package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// precondition sets IfUID and IfResourceVersion in an object that is sent. The server takes them
// as preconditions.
func (w Options) precondition(o *core.Subject, u *unstructured.Unstructured) error {
	if err := w.agrees(u.GetUID(), u.GetResourceVersion()); err != nil {
		return o.Conflict(err)
	}
	if w.UID != nil {
		u.SetUID(*w.UID)
	}
	if w.Version != nil {
		u.SetResourceVersion(*w.Version)
	}
	return nil
}

// agrees returns an error if what is sent has a UID or version that contradicts the options. One
// of the two conditions would be lost without an error.
func (w Options) agrees(uid types.UID, version string) error {
	switch {
	case w.UID != nil && uid != "" && uid != *w.UID:
		return fmt.Errorf("what is sent is for the UID %q, the precondition for %q", uid, *w.UID)
	case w.Version != nil && version != "" && version != *w.Version:
		return fmt.Errorf("what is sent is for the resource version %q, the precondition for %q", version, *w.Version)
	}
	return nil
}

// preconditionPatch adds IfUID and IfResourceVersion to a patch: as part of the metadata, which
// the server compares, or as tests of a JSON patch.
func (w Options) preconditionPatch(o *core.Subject, pt types.PatchType, data []byte) ([]byte, error) {
	if w.UID == nil && w.Version == nil {
		return data, nil
	}
	if pt == types.JSONPatchType {
		return w.testsBefore(data)
	}
	patch := &unstructured.Unstructured{}
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

func (w Options) testsBefore(data []byte) ([]byte, error) {
	var ops []any
	if err := jsonform.Decode(data, &ops); err != nil {
		return nil, fmt.Errorf("a JSON patch: %w", err)
	}
	var tests []any
	test := func(path, value string) {
		tests = append(tests, map[string]any{"op": "test", "path": path, "value": value})
	}
	if w.UID != nil {
		test("/metadata/uid", string(*w.UID))
	}
	if w.Version != nil {
		test("/metadata/resourceVersion", *w.Version)
	}
	return jsonform.Encode(append(tests, ops...))
}

// preconditionBody puts the options into a body that is posted.
func (w Options) preconditionBody(o *core.Subject, u *unstructured.Unstructured) error {
	if gvk := u.GroupVersionKind(); gvk.Group != "policy" || gvk.Kind != "Eviction" {
		return w.precondition(o, u)
	}
	own, _, _ := unstructured.NestedStringMap(u.Object, "deleteOptions", "preconditions")
	if err := w.agrees(types.UID(own["uid"]), own["resourceVersion"]); err != nil {
		return o.Conflict(err)
	}
	set := func(value any, field ...string) error {
		return unstructured.SetNestedField(u.Object, value, append([]string{"deleteOptions"}, field...)...)
	}
	var errs []error
	if w.UID != nil {
		errs = append(errs, set(string(*w.UID), "preconditions", "uid"))
	}
	if w.Version != nil {
		errs = append(errs, set(*w.Version, "preconditions", "resourceVersion"))
	}
	if w.Grace != nil {
		errs = append(errs, set(*w.Grace, "gracePeriodSeconds"))
	}
	if w.Propagation != nil {
		errs = append(errs, set(string(*w.Propagation), "propagationPolicy"))
	}
	return errors.Join(errs...)
}

// patchError is the error of a patch or apply, as the caller is told it. It is a conflict if a
// precondition did not hold. For a UID, and for a JSON patch, the server answers "invalid". For a
// JSON patch it does not say what is wrong, so the object is read.
func (c Writer) patchError(ctx context.Context, o *core.Subject, w Options, pt types.PatchType, err error) error {
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("%w (ForceOwnership takes over what other field managers own)", err)
	}
	if (w.UID == nil && w.Version == nil) || !apierrors.IsInvalid(err) {
		return err
	}
	failed := strings.Contains(err.Error(), "metadata.uid")
	if !failed && pt == types.JSONPatchType {
		now, getErr := c.Get(ctx, o)
		failed = getErr == nil && w.met(now) != nil
	}
	if failed {
		return o.Conflict(err)
	}
	return err
}

// met returns an error if an object does not meet the preconditions.
func (w Options) met(o metav1.Object) error {
	switch {
	case w.UID != nil && *w.UID != o.GetUID():
		return fmt.Errorf("its UID is %q, not %q", o.GetUID(), *w.UID)
	case w.Version != nil && *w.Version != o.GetResourceVersion():
		return fmt.Errorf("its resource version is %q, not %q", o.GetResourceVersion(), *w.Version)
	}
	return nil
}

// bind returns the options of a write, and with them the preconditions that it needs to be sent
// under ctx. If ctx is bound to a lease, the preconditions fail as soon as the next holder of the
// lease has written to the object. Their version was known while the lease was held and when the
// work began, or the work wrote that version itself. So the version is older than all that another
// holder has written since, whatever the clocks say. A fake has no versions to bind a write to.
func (c Writer) bind(ctx context.Context, op Operation, o *core.Subject, w Options) (Options, error) {
	if c.Fake != nil || !fence.Fenced(ctx) || w.Unfenced || w.Version != nil || !op.preconditioned(w.sent(o)) {
		return w, nil
	}
	uid, version, err := c.seen(ctx, o, w.UID)
	switch {
	case apierrors.IsNotFound(err) && !core.Misplaced(err) && op == OpApply:
		return w, nil // it creates the object, and a create takes no precondition
	case err != nil:
		return w, err
	}
	if !fence.HorizonOf(ctx, c.Core).Includes(o.Resource.Storage, o.Stored(), version) {
		return w, o.Conflict(errors.New("it has been changed since this work began"))
	}
	w.UID, w.Version = &uid, &version
	return w, nil
}

// seen returns the UID and the version of an object as the client knows it, or else the server.
func (c Writer) seen(
	ctx context.Context, o *core.Subject, wanted *types.UID,
) (uid types.UID, version string, err error) {
	var found objects.Object
	known, ok := c.Streams.Lookup(o.Resource, o.Key(), intake.Version)
	if ok && known != nil {
		found = known
	} else if found, err = c.Get(ctx, o); err != nil {
		return "", "", err
	}
	if wanted != nil && found.GetUID() != *wanted {
		return *wanted, found.GetResourceVersion(), nil // the server will answer with a conflict
	}
	return found.GetUID(), found.GetResourceVersion(), nil
}

// possible is a conflict if no object can have what the options ask for. It is an error if the
// server would not notice that the kind has no status to write.
func (c Writer) possible(op Operation, o *core.Subject, w Options) error {
	switch {
	case c.Fake != nil:
		return hasStatus(op, o)
	case !op.takesOptions():
		return nil
	case w.UID != nil && *w.UID == "": // the server reads it as no precondition, and "0", too
		return o.Conflict(errors.New("no object has the empty UID of the precondition"))
	case w.Version != nil && strings.Trim(*w.Version, "0") == "":
		return o.Conflict(fmt.Errorf("no object has the resource version %q of the precondition", *w.Version))
	}
	return nil
}

// hasStatus refuses to write the status of a built-in kind that has none. A fake would take it for
// a write of the whole object.
func hasStatus(op Operation, o *core.Subject) error {
	kind := o.Resource.Kind
	if op.subresource != statusSubresource || !fake.OfKubernetes(kind) {
		return nil
	}
	if typ := scheme.Scheme.AllKnownTypes()[kind]; typ.Kind() == reflect.Struct {
		if _, has := typ.FieldByName("Status"); has {
			return nil
		}
	}
	if op.verb == toModify { // the object is there: "not found" would mislead
		return errNoSubresource(op)
	}
	of, code := o.Resource.GroupResource(), http.StatusNotFound
	answer := apierrors.NewGenericServerResponse(code, op.verb.text, of, o.GetName(), "", 0, true)
	return fmt.Errorf("%w: %w", errNoSubresource(op), answer)
}
