package testserver

import (
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// writing is what the query of a write says.
type writing struct {
	dry        bool
	manager    string // who writes
	force      bool   // conflicts are taken over
	validation string // what the client wants to hear of fields that the kind does not have
}

// writing reads and checks the options of a write.
func (q *request) writing(how types.PatchType) (w writing, err error) {
	var dryRun []string
	switch q.Method {
	case http.MethodPost:
		var o metav1.CreateOptions
		if err := optionsOf(q, &o, metav1.Convert_url_Values_To_v1_CreateOptions); err != nil {
			return w, err
		}
		err = refused("CreateOptions", validation.ValidateCreateOptions(&o))
		dryRun, w.manager, w.validation = o.DryRun, o.FieldManager, o.FieldValidation
	case http.MethodPut:
		var o metav1.UpdateOptions
		if err := optionsOf(q, &o, metav1.Convert_url_Values_To_v1_UpdateOptions); err != nil {
			return w, err
		}
		err = refused("UpdateOptions", validation.ValidateUpdateOptions(&o))
		dryRun, w.manager, w.validation = o.DryRun, o.FieldManager, o.FieldValidation
	case http.MethodPatch:
		var o metav1.PatchOptions
		if err := optionsOf(q, &o, metav1.Convert_url_Values_To_v1_PatchOptions); err != nil {
			return w, err
		}
		err = refused("PatchOptions", validation.ValidatePatchOptions(&o, how))
		dryRun, w.manager, w.validation = o.DryRun, o.FieldManager, o.FieldValidation
		w.force = o.Force != nil && *o.Force
	}
	w.dry = len(dryRun) > 0
	if w.manager == "" {
		w.manager, _, _ = strings.Cut(q.UserAgent(), "/")
	}
	return w, err
}

// optionsOf reads options from a query.
func optionsOf[O any](q *request, into *O, convert func(*url.Values, *O, conversion.Scope) error) error {
	if err := convert(&q.query, into, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// refused is the error of options that are not valid, nil if they are.
func refused(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}
