package testserver

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/rules"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// outcome is what a write has made.
type outcome struct {
	content map[string]any // as it is stored
	rv      int64
	created bool
	gone    bool // the object is no longer stored
}

func (s *Server) answer(w http.ResponseWriter, q *request, o outcome) {
	code := http.StatusOK
	if o.created {
		code = http.StatusCreated
	}
	s.send(w, q, code, shown(q.kind, o.content, o.rv))
}

func (s *Server) post(w http.ResponseWriter, q *request) error {
	var err error
	if q.how, err = q.writing(""); err != nil {
		return err
	}
	if q.part != "" {
		return s.postPart(w, q)
	}
	if q.kind.Namespaced && q.namespace == "" {
		return errMethod(q)
	}
	c, err := s.sent(q)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: c}
	switch ns := o.GetNamespace(); {
	case q.namespace != "" && ns != "" && ns != q.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case o.GetResourceVersion() != "":
		return errors.New("resourceVersion should not be set on objects to be created")
	}
	made, err := s.create(q, c)
	if err == nil {
		s.answer(w, q, made)
	}
	return err
}

// sent is the object that a request has sent.
func (s *Server) sent(q *request) (map[string]any, error) {
	c, err := s.content(q)
	if err != nil {
		return nil, err
	}
	if warning := rules.OneReferenceEach(c, ""); warning != "" {
		q.warn(warning)
	}
	return c, nil
}

// create stores a new object.
func (s *Server) create(q *request, c map[string]any) (outcome, error) {
	o := &unstructured.Unstructured{Object: c}
	if o.GetName() == "" && o.GetGenerateName() == "" {
		return outcome{}, rules.Invalid(q.kind, "", field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
	}
	rules.GenerateName(c)
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	q.name = o.GetName()
	o.SetNamespace(q.namespace)
	c, err := s.managers.Update(q.kind, "", nil, c, q.how.manager)
	if err != nil {
		return outcome{}, err
	}
	return s.createManaged(q, c)
}

// createManaged stores a new object whose managedFields are known.
func (s *Server) createManaged(q *request, c map[string]any) (outcome, error) {
	o := &unstructured.Unstructured{Object: c}
	o.SetNamespace(q.namespace)
	version := o.GetResourceVersion()
	if err := s.readied(q, c); err != nil {
		return outcome{}, err
	}
	return s.insert(q, c, version)
}

// readied makes content a new object.
func (s *Server) readied(q *request, c map[string]any) error {
	if err := s.takesObjects(q); err != nil {
		return err
	}
	for _, text := range rules.Warnings(q.kind, nil, c) {
		q.warn(text)
	}
	return rules.Create(q.kind, c, uuid.NewUUID(), time.Now())
}

// insert stores an object that does not exist.
func (s *Server) insert(q *request, c map[string]any, version string) (outcome, error) {
	if c = stored(q.kind, runtime.DeepCopyJSON(c)); !q.how.dry {
		(&unstructured.Unstructured{Object: c}).SetSelfLink("")
	}
	done, err := s.store.Write(q.key(), func(old store.Object, rv int64) (map[string]any, bool, error) {
		if old.Content != nil {
			return nil, false, apierrors.NewAlreadyExists(q.kind.GR(), q.name)
		}
		return c, !q.how.dry, nil
	})
	if err != nil {
		return outcome{}, err
	}
	if err := s.changed(q); err != nil {
		return outcome{}, err
	}
	if q.how.dry { // the version is what the request says
		asked, _ := strconv.ParseInt(version, 10, 64) // 0 if it says nothing
		done.New.RV = asked
	}
	return outcome{content: c, rv: done.New.RV, created: true}, nil
}

// stored is content as the store keeps it: the version is beside it.
func stored(k *kinds.Kind, c map[string]any) map[string]any {
	o := &unstructured.Unstructured{Object: c}
	o.SetResourceVersion("")
	return k.Stored(c)
}

// takesObjects says why no object may be created in the namespace.
func (s *Server) takesObjects(q *request) error {
	if q.kind.Custom != nil {
		d, _ := s.store.Get(store.Key{Resource: definitionsStored, Name: q.kind.Storage})
		if o := (unstructured.Unstructured{Object: d.Content}); o.GetDeletionTimestamp() != nil {
			return apierrors.NewForbidden(q.kind.GR(), q.name, errors.New("create not allowed while custom resource definition is terminating"))
		}
	}
	if !q.kind.Namespaced {
		return nil
	}
	ns, ok := s.store.Get(store.Key{Resource: namespacesStored, Name: q.namespace})
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, q.namespace)
	}
	o := unstructured.Unstructured{Object: ns.Content}
	if o.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(q.kind.GR(), q.name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", q.namespace), Field: "metadata.namespace",
	})
	return err
}

// changer makes the next state of an object.
type changer func(old map[string]any) (map[string]any, error)

// update stores the next state of an object that exists.
func (s *Server) update(q *request, next changer) (outcome, error) {
	var made outcome
	_, err := s.store.Write(q.key(), func(old store.Object, rv int64) (map[string]any, bool, error) {
		if old.Content == nil {
			return nil, false, s.notFound(q)
		}
		was := shown(q.kind, old.Content, old.RV)
		c, err := next(runtime.DeepCopyJSON(was))
		if err != nil {
			return nil, false, err
		}
		ended := rules.Ended(q.kind, c)
		if !q.how.dry && !ended {
			(&unstructured.Unstructured{Object: c}).SetSelfLink("") // it is not stored
		}
		same := reflect.DeepEqual(c, was)
		made = outcome{content: stored(q.kind, runtime.DeepCopyJSON(c)), rv: old.RV}
		switch {
		case same || q.how.dry:
			return nil, false, nil
		case ended:
			return nil, true, nil // the answer has the old version
		}
		made.rv = rv
		return made.content, true, nil
	})
	if err != nil {
		return outcome{}, err
	}
	return made, s.changed(q)
}

// changed follows up on a write of something that the server itself goes by.
func (s *Server) changed(q *request) error {
	if q.kind.Storage != definitionsStored {
		return nil
	}
	if err := s.establish(q); err != nil {
		return err
	}
	return s.define()
}

func (s *Server) put(w http.ResponseWriter, q *request) error {
	var err error
	if q.how, err = q.writing(""); err != nil {
		return err
	}
	if q.part == "scale" {
		return s.putScale(w, q)
	}
	c, err := s.sent(q)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: c}
	switch name, ns := o.GetName(), o.GetNamespace(); {
	case name == "":
		return apierrors.NewBadRequest("the name of the object must be set: it is " + strconv.Quote(q.name) + " in the URL")
	case name != q.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, q.name))
	case ns != "" && ns != q.namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the object (%s) does not match the namespace on the URL (%s)", ns, q.namespace))
	}
	if q.kind.Namespaced {
		o.SetNamespace(q.namespace)
	}
	made, err := s.update(q, func(old map[string]any) (map[string]any, error) { return s.next(q, old, c) })
	if apierrors.IsNotFound(err) && q.kind.Rules.UpsertByPut && q.part == "" {
		if o.GetUID() != "" {
			return apierrors.NewConflict(q.kind.GR(), q.name, fmt.Errorf("there is none, and the UID %s was asked for", o.GetUID()))
		}
		made, err = s.create(q, c)
	}
	if err == nil {
		s.answer(w, q, made)
	}
	return err
}

// next makes the next state of an object out of what was sent, or was patched together.
func (s *Server) next(q *request, old, c map[string]any) (map[string]any, error) {
	was, is := &unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: c}
	if err := unchanged(q, was, is); err != nil {
		return nil, err
	}
	c, err := s.managers.Update(q.kind, q.part, old, c, q.how.manager)
	if err != nil {
		return nil, err
	}
	if err := updated(q, old, c); err != nil {
		return nil, err
	}
	keepTimes(old, c)
	return c, nil
}

// updated makes content the next state of an object.
func updated(q *request, old, c map[string]any) error {
	rv := (&unstructured.Unstructured{Object: old}).GetResourceVersion()
	(&unstructured.Unstructured{Object: c}).SetResourceVersion(rv)
	if warning := rules.OneReferenceEach(c, " after mutating admission happens"); warning != "" {
		q.warn(warning)
	}
	for _, text := range rules.Warnings(q.kind, old, c) {
		q.warn(text)
	}
	return rules.Update(q.kind, q.part, old, c)
}

// etcdKey is where a real server stores an object.
func etcdKey(q *request) string {
	at := "/registry/"
	if q.kind.Custom != nil {
		at += q.kind.Group + "/"
	}
	return at + q.kind.Resource + "/" + q.key().Path()
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// unchanged checks that the request starts from the object that there is.
func unchanged(q *request, was, is *unstructured.Unstructured) error {
	rv, uid := is.GetResourceVersion(), is.GetUID()
	if _, err := strconv.ParseUint(rv, 10, 63); rv != "" && err != nil {
		return fmt.Errorf("invalid resource version %q: %w", rv, err)
	}
	if rv == "0" {
		rv = ""
	}
	switch {
	case uid != "" && uid != was.GetUID() && q.Method == http.MethodPut:
		const says = "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v"
		return apierrors.NewConflict(q.kind.GR(), q.name, fmt.Errorf(says, etcdKey(q), uid, was.GetUID()))
	case rv == "" && q.kind.Rules.Versioned && q.Method == http.MethodPut:
		kind := schema.GroupKind{Group: q.kind.Group, Kind: q.kind.Resource}
		return apierrors.NewInvalid(kind, q.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	case rv != "" && rv != was.GetResourceVersion():
		return apierrors.NewConflict(q.kind.GR(), q.name, errModified)
	}
	return nil
}

// keepTimes keeps the managedFields as they were if nothing else differs: a write that changes
// nothing makes no version.
func keepTimes(old, c map[string]any) {
	was, is := &unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: c}
	before, after := was.GetManagedFields(), is.GetManagedFields()
	if len(before) != len(after) {
		return
	}
	for i := range after {
		a, b := before[i], after[i]
		a.Time, b.Time = nil, nil
		if !reflect.DeepEqual(a, b) {
			return
		}
	}
	plain := runtime.DeepCopyJSON(c)
	(&unstructured.Unstructured{Object: plain}).SetManagedFields(before)
	kept, _, _ := unstructured.NestedFieldCopy(old, "metadata", "managedFields")
	_ = unstructured.SetNestedField(plain, kept, "metadata", "managedFields") // the metadata is a map
	if reflect.DeepEqual(plain, old) && kept != nil {
		_ = unstructured.SetNestedField(c, kept, "metadata", "managedFields")
	}
}
