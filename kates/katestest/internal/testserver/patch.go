package testserver

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/fields"
)

func (s *Server) patch(w http.ResponseWriter, q *request) error {
	media, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil {
		media = q.Header.Get("Content-Type")
	}
	how := types.PatchType(media)
	takes := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType}
	if q.kind.Custom == nil {
		takes = append(takes, types.StrategicMergePatchType)
	}
	if !slices.Contains(takes, how) {
		if q.kind.Custom == nil {
			return general(http.StatusUnsupportedMediaType, "the media type of the patch is not known: "+media)
		}
		return unsupported("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
	}
	if q.how, err = q.writing(how); err != nil {
		return err
	}
	switch {
	case q.part == "scale":
		return s.patchScale(w, q, how)
	case how == types.ApplyYAMLPatchType:
		return s.apply(w, q)
	}
	made, err := s.update(q, func(old map[string]any) (map[string]any, error) {
		c, err := fields.Patch(s.scheme, q.kind, how, old, q.body)
		if err != nil {
			return nil, err
		}
		if err := sameKind(q, c); err != nil {
			return nil, err
		}
		if c, err = s.again(q, c); err != nil {
			return nil, patched(err)
		}
		o := (&unstructured.Unstructured{Object: c})
		if ns := o.GetNamespace(); ns != "" && ns != q.namespace {
			return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		if o.GetName() != q.name {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), q.name))
		}
		return s.next(q, old, c)
	})
	if err == nil {
		s.answer(w, q, made)
	}
	return err
}

// sameKind checks that a patch has not made a custom object one of another kind.
func sameKind(q *request, c map[string]any) error {
	if q.kind.Custom == nil {
		return nil
	}
	o := &unstructured.Unstructured{Object: c}
	if q.part == "status" { // it is kept, as all but the status is
		o.SetGroupVersionKind(q.kind.GroupVersionKind)
		return nil
	}
	is, want := o.GroupVersionKind(), q.kind.GroupVersionKind
	var errs field.ErrorList
	if is.GroupVersion() != want.GroupVersion() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), o.GetAPIVersion(), "must be "+want.GroupVersion().String()))
	}
	if is.Kind != want.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), is.Kind, "must be "+want.Kind))
	}
	if errs == nil {
		return nil
	}
	return apierrors.NewInvalid(is.GroupKind(), q.name, errs)
}

// apply applies a configuration: it creates the object, or merges the configuration into it.
func (s *Server) apply(w http.ResponseWriter, q *request) error {
	applied, err := appliedIn(q)
	if err != nil {
		return err
	}
	a := &unstructured.Unstructured{Object: applied}
	switch {
	case a.GetName() != q.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", a.GetName(), q.name))
	case a.GetNamespace() != "" && a.GetNamespace() != q.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	merge := func(old map[string]any) (map[string]any, error) {
		c, err := s.managers.Apply(q.kind, q.part, old, unstructuredCopy(applied), q.how.manager, q.how.force)
		if err != nil {
			return nil, err
		}
		return s.again(q, c)
	}
	made, err := s.update(q, func(old map[string]any) (map[string]any, error) {
		c, err := merge(old)
		if err != nil {
			return nil, err
		}
		return s.applied(q, old, c)
	})
	if apierrors.IsNotFound(err) && q.part == "" {
		made, err = s.applyNew(q, a, merge)
	}
	if err == nil {
		s.answer(w, q, made)
	}
	return err
}

// appliedIn is the configuration in a request.
func appliedIn(q *request) (applied map[string]any, err error) {
	raw, err := yaml.YAMLToJSON(q.body)
	if err == nil {
		err = utiljson.Unmarshal(raw, &applied)
	}
	if err == nil && applied == nil {
		err = errors.New("it is no object")
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return applied, nil
}

func unstructuredCopy(c map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: c}).DeepCopy().Object
}

// applied makes the next state of an object out of what was merged.
func (s *Server) applied(q *request, old, c map[string]any) (map[string]any, error) {
	managed := (&unstructured.Unstructured{Object: c}).GetManagedFields()
	if err := unchanged(q, &unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: c}); err != nil {
		return nil, err
	}
	if err := updated(q, old, c); err != nil {
		return nil, err
	}
	(&unstructured.Unstructured{Object: c}).SetManagedFields(managed)
	keepTimes(old, c)
	return c, nil
}

// applyNew creates an object that is applied.
func (s *Server) applyNew(q *request, a *unstructured.Unstructured, merge changer) (outcome, error) {
	c, err := merge(nil)
	if err != nil {
		return outcome{}, err
	}
	if a.GetUID() != "" {
		return outcome{}, apierrors.NewConflict(q.kind.GR(), q.name, errors.New("uid mismatch: the provided object specified uid "+string(a.GetUID())+", and no existing object was found"))
	}
	o := &unstructured.Unstructured{Object: c}
	o.SetName(q.name)
	return s.createManaged(q, c)
}
