package testserver

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/rules"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// options reads how to delete, from the body or, where it has none, from the query.
func (s *Server) options(q *request) (o metav1.DeleteOptions, dry bool, err error) {
	switch {
	case len(q.body) == 0:
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&q.query, &o, nil)
	case q.Header.Get("Content-Type") == runtime.ContentTypeProtobuf:
		kind := schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
		_, _, err = protobuf.NewSerializer(s.scheme, s.scheme).Decode(q.body, &kind, &o)
	default:
		err = yaml.Unmarshal(q.body, &o)
	}
	if err == nil && o.Kind != "" && o.Kind != "DeleteOptions" {
		err = fmt.Errorf("the body is of kind %s, and has to be of DeleteOptions", o.Kind)
	}
	if err != nil {
		return o, false, apierrors.NewBadRequest(err.Error())
	}
	return o, len(o.DryRun) > 0, refused("DeleteOptions", validation.ValidateDeleteOptions(&o))
}

func (s *Server) delete(w http.ResponseWriter, q *request) error {
	o, dry, err := s.options(q)
	if err != nil {
		return err
	}
	if err := rules.LastingNamespace(q.kind, q.name); err != nil {
		return err
	}
	made, went, err := s.remove(q, o, dry)
	switch {
	case err != nil:
		return err
	case went && !q.kind.Rules.AnswersObject && !q.kind.Rules.Grace:
		s.send(w, q, http.StatusOK, deleted(q, made.content))
	default:
		s.send(w, q, http.StatusOK, shown(q.kind, made.content, made.rv))
	}
	return nil
}

// remove begins or ends the deletion of an object. It reports whether the object went.
func (s *Server) remove(q *request, o metav1.DeleteOptions, dry bool) (made outcome, went bool, err error) {
	for {
		made, went, err = s.terminate(q, o, dry)
		if err != nil || !went || dry || made.gone {
			break
		}
		if made.gone, err = s.end(q, &made); made.gone || err != nil {
			break
		}
	}
	if err == nil {
		err = s.changed(q)
	}
	return made, went, err
}

// terminate is the first step of a deletion. It reports whether the object goes; if there is no
// second step to do, it is gone.
func (s *Server) terminate(q *request, o metav1.DeleteOptions, dry bool) (made outcome, goes bool, err error) {
	_, err = s.store.Write(q.key(), func(old store.Object, rv int64) (map[string]any, bool, error) {
		if old.Content == nil {
			return nil, false, s.notFound(q)
		}
		was := shown(q.kind, old.Content, old.RV)
		d, err := rules.Delete(q.kind, was, o, time.Now())
		if err != nil {
			return nil, false, err
		}
		goes = d.Gone
		same := same(d.Next, was)
		made = outcome{content: stored(q.kind, runtime.DeepCopyJSON(d.Next)), rv: old.RV}
		switch {
		case dry || same && !d.Gone:
			return nil, false, nil
		case same:
			made.rv, made.gone = rv, true
			return nil, true, nil
		}
		made.rv = rv
		return made.content, true, nil
	})
	return made, goes, err
}

// end is the second step of a deletion: the object goes, unless somebody has changed it.
func (s *Server) end(q *request, made *outcome) (done bool, err error) {
	_, err = s.store.Write(q.key(), func(old store.Object, rv int64) (map[string]any, bool, error) {
		if done = old.Content == nil || old.RV == made.rv; !done || old.Content == nil {
			return nil, false, nil
		}
		made.rv = rv
		return nil, true, nil
	})
	return done, err
}

// deleted is the answer to a DELETE that does not have the object.
func deleted(q *request, content map[string]any) map[string]any {
	o := unstructured.Unstructured{Object: content}
	details := map[string]any{"name": o.GetName(), "kind": q.kind.Resource, "uid": string(o.GetUID())}
	if q.kind.Group != "" {
		details["group"] = q.kind.Group
	}
	return map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Success", "details": details}
}

// deleteAll deletes what a list has, and answers with that as it was before. An object that is
// made again in the meantime stays.
func (s *Server) deleteAll(w http.ResponseWriter, q *request) error {
	o, dry, err := s.options(q)
	if err != nil {
		return err
	}
	l, err := s.listing(q)
	if err != nil {
		return err
	}
	page, meta, err := s.page(q, l)
	if err != nil {
		return err
	}
	if err := s.deletePage(q, page, o, dry); err != nil {
		return err
	}
	s.send(w, q, http.StatusOK, listOf(q.kind, meta, page))
	return nil
}

func (s *Server) deletePage(q *request, page []store.Change, o metav1.DeleteOptions, dry bool) error {
	for _, c := range page {
		one, options := *q, o.DeepCopy()
		one.namespace, one.name = c.Key.Namespace, c.Key.Name
		if options.Preconditions == nil {
			uid := (&unstructured.Unstructured{Object: c.New.Content}).GetUID()
			options.Preconditions = &metav1.Preconditions{UID: &uid}
		}
		_, _, err := s.remove(&one, *options, dry)
		if again := o.Preconditions == nil && apierrors.IsConflict(err); err != nil && !again && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
