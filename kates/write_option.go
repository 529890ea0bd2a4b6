package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/jsonform"
)

// A WriteOption changes one write. Options that do not apply to the method are ignored. One that
// makes no sense (nil, a name that no field manager has) is an error of the write, and nothing is
// sent.
type WriteOption func(*writeOptions)

type writeOptions struct {
	dryRun       []string
	fieldManager string
	force        bool
	uid          *types.UID
	version      *string
	propagation  *metav1.DeletionPropagation
	grace        *int64
	unfenced     bool
	asks         bool          // the caller asks the server, though nothing may change
	body         *Unstructured // what is sent in place of the object; nil: the object itself
	wrong        error         // the first option that makes no sense
}

// DryRun lets the server do everything but store the result. Snapshots do not show the write
// either.
func DryRun() WriteOption {
	return func(o *writeOptions) { o.dryRun, o.asks = []string{metav1.DryRunAll}, true }
}

// FieldManager sets the field manager of this write, see [WithFieldManager].
func FieldManager(name string) WriteOption {
	return func(o *writeOptions) {
		o.fieldManager = name
		o.wrong = cmp.Or(o.wrong, managerName(name))
	}
}

// ForceOwnership lets an Apply take over fields that other managers own. Without it they are a
// conflict. An owner reference is one field: so is that of an object that [Client.ApplyOwned]
// adopts, if another manager has set it otherwise.
func ForceOwnership() WriteOption { return func(o *writeOptions) { o.force = true } }

// IfUID makes a Delete, Update, Patch or Apply fail with a conflict unless the object has this
// UID, so that it does not touch another object of the same name. No object has an empty one.
func IfUID(uid types.UID) WriteOption {
	return func(o *writeOptions) { o.uid, o.asks = &uid, true }
}

// IfResourceVersion makes a Delete, Update, Patch or Apply fail with a conflict unless the object
// is at this resource version, so that nobody has changed it since. No object is at "" or "0".
func IfResourceVersion(version string) WriteOption {
	return func(o *writeOptions) { o.version, o.asks = &version, true }
}

// Propagation sets how the objects that a deleted object owns are deleted: Background or
// Foreground, or not at all: Orphan.
func Propagation(p metav1.DeletionPropagation) WriteOption {
	return func(o *writeOptions) { o.propagation = &p }
}

// GracePeriod sets how long a deleted object may take to end, rounded up to seconds; 0 is at
// once.
func GracePeriod(d time.Duration) WriteOption {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++ // half a second, rounded down, would be at once
	}
	return func(o *writeOptions) { o.grace = &seconds }
}

func (c *Client) writeOptions(opts []WriteOption) writeOptions {
	o := writeOptions{fieldManager: c.core.fieldManager}
	for _, f := range opts {
		if f == nil {
			o.wrong = cmp.Or(o.wrong, errors.New("a write option is nil"))
			continue
		}
		f(&o)
	}
	return o
}

func (w writeOptions) create() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
}

func (w writeOptions) update() metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
}

func (w writeOptions) patch(pt PatchType) metav1.PatchOptions {
	o := metav1.PatchOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
	if pt == types.ApplyPatchType {
		o.FieldManager, o.Force = managerOr(w.fieldManager), &w.force
	}
	return o
}

func (w writeOptions) delete() metav1.DeleteOptions {
	o := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		DryRun:   w.dryRun, PropagationPolicy: w.propagation, GracePeriodSeconds: w.grace,
	}
	if w.uid != nil || w.version != nil {
		o.Preconditions = &metav1.Preconditions{UID: w.uid, ResourceVersion: w.version}
	}
	return o
}

// Unfenced sends a write without the preconditions that it has under a lease (see
// [LeaderElection], Fencing). It is for writes that may overwrite any version. The write is still
// not sent if the lease is over.
func Unfenced() WriteOption { return func(o *writeOptions) { o.unfenced = true } }

// operation is what a request does to an object, or to one of its subresources.
type operation struct {
	verb        verb
	subresource string // empty: the object itself
}

// String is the wording of the operation in errors: "update", "update the status of".
func (op operation) String() string {
	text := op.verb.text
	if op.subresource != "" {
		text += " the " + op.subresource + " of"
	}
	return text
}

// subresources are the arguments of a dynamic client for the operation.
func (op operation) subresources() []string {
	if op.subresource == "" {
		return nil
	}
	return []string{op.subresource}
}

// verb is what an operation does: its wording, and what depends on it. Several verbs may be the
// same to the server, and differ in their wording only.
type verb struct {
	text  string
	bound bound
}

// bound says when a write under a lease needs preconditions of the client's own, see server.bind.
type bound int

const (
	always       bound = iota
	never              // the server takes none, or the operation itself reads the object first
	ifNoneItself       // unless the object carries a version, which is a precondition
)

var (
	toGet       = verb{"get", always}
	toList      = verb{"list", always}
	toObserve   = verb{"observe", always}
	toCreate    = verb{"create", never}
	toUpdate    = verb{"update", ifNoneItself}
	toPatch     = verb{"patch", always}
	toApply     = verb{"apply", ifNoneItself}
	toUpsert    = verb{"upsert", never}
	toDelete    = verb{"delete", always}
	toDeleteAll = verb{"delete all", always}
	toPrune     = verb{"prune", always}
	toWithdraw  = verb{"withdraw from", always}
	toModify    = verb{"modify", always}
	toSet       = verb{"set", always}
)

// The operations on objects themselves, and those on the status that have methods of their own.
var (
	opGet          = operation{verb: toGet}
	opList         = operation{verb: toList}
	opObserve      = operation{verb: toObserve}
	opCreate       = operation{verb: toCreate}
	opUpdate       = operation{verb: toUpdate}
	opUpdateStatus = operation{verb: toUpdate, subresource: statusSubresource}
	opPatch        = operation{verb: toPatch}
	opApply        = operation{verb: toApply}
	opUpsert       = operation{verb: toUpsert}
	opDelete       = operation{verb: toDelete}
	opDeleteAll    = operation{verb: toDeleteAll}
	opPrune        = operation{verb: toPrune}
	opWithdraw     = operation{verb: toWithdraw}
	opModify       = operation{verb: toModify}
	opModifyStatus = operation{verb: toModify, subresource: statusSubresource}
	opSetStatus    = operation{verb: toSet, subresource: statusSubresource}
)

// statusSubresource is the subresource of most kinds.
const statusSubresource = "status"

// eviction is the one subresource that takes preconditions when it is created.
const eviction = "eviction"

// preconditioned reports whether the write of an object under a lease needs preconditions.
func (op operation) preconditioned(o *object) bool {
	if op.verb == toCreate && op.subresource == eviction {
		return true
	}
	switch op.verb.bound {
	case never:
		return false
	case ifNoneItself:
		return o.GetResourceVersion() == ""
	}
	return true
}

// sent is what carries the version of a write that has one.
func (w writeOptions) sent(o *object) *object {
	if w.body == nil {
		return o
	}
	return &object{Unstructured: w.body}
}

// takesOptions reports whether the preconditions in the caller's options have a meaning.
func (op operation) takesOptions() bool { return op != opCreate && op != opUpsert }

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

// patchError is the error of a patch or apply, as the caller is told it. It is a conflict if a
// precondition did not hold. For a UID, and for a JSON patch, the server answers "invalid". For a
// JSON patch it does not say what is wrong, so the object is read.
func (c *Client) patchError(ctx context.Context, o *object, w writeOptions, pt PatchType, err error) error {
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("%w (ForceOwnership takes over what other field managers own)", err)
	}
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
