package katestest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/internal/test/suite/conformance"
	"github.com/kates-go/kates/kates/katestest"
)

var writeGaps = flag.Bool("katestest.gaps", false, "write which cases of conformance the bare fake answers otherwise")

// gapsFile has the cases of conformance that client-go's fake answers otherwise than a real
// server.
const gapsFile = "testdata/bare.gaps"

// TestTheBareFakeAnswersOtherwiseWhereItsDocumentationSaysSo compares client-go's fake with the
// answers of the real API server. What it answers otherwise is listed, so that a new version of
// the fake, or of the cases, is noticed.
func TestTheBareFakeAnswersOtherwiseWhereItsDocumentationSaysSo(t *testing.T) {
	server := conformance.Server{Config: bareConfig(t), Immediate: true}
	if *writeGaps {
		gaps, err := conformance.Gaps(t.Context(), server)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(gapsFile, []byte(strings.Join(gaps, "\n")+"\n"), 0o644))
		return
	}
	raw, err := os.ReadFile(gapsFile)
	require.NoError(t, err)
	gaps := strings.Split(strings.TrimSpace(string(raw)), "\n")
	conformance.Check(t, server, gaps...)
}

// bareConfig leads to client-go's fake, behind the thinnest HTTP that there can be: each request
// is one call of the fake.
func bareConfig(t *testing.T) *rest.Config {
	custom := func(kind string, cluster bool) katestest.Kind {
		return katestest.Kind{APIVersion: "conformance.kates.io/v1", Kind: kind, ClusterScoped: cluster}
	}
	fake := katestest.New(t, katestest.WithKinds(custom("Widget", false), custom("Plain", false), custom("Gadget", true)))
	return &rest.Config{Host: "http://bare.test", Transport: overHTTP{fake.Dynamic, fake.Mapper}}
}

// overHTTP is a transport to a dynamic client, of the kinds that it has.
type overHTTP struct {
	client dynamic.Interface
	kinds  meta.RESTMapper
}

func (b overHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	code, answer, err := b.answer(r)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		if known, is := err.(apierrors.APIStatus); is { //nolint:errorlint // the fake wraps nothing
			status = known.Status()
		}
		status.APIVersion, status.Kind = "v1", "Status"
		code, answer = int(status.Code), status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return nil, err
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

func (b overHTTP) answer(r *http.Request) (int, any, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gvr schema.GroupVersionResource
	switch {
	case parts[0] == "api" && len(parts) > 2:
		gvr.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		gvr.Group, gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return 0, nil, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" {
		namespace, parts = parts[1], parts[2:]
	}
	gvr.Resource = parts[0]
	if kind, err := b.kinds.KindFor(gvr); err != nil || kind.GroupVersion() != gvr.GroupVersion() {
		return 0, nil, apierrors.NewNotFound(gvr.GroupResource(), "")
	}
	var on dynamic.ResourceInterface = b.client.Resource(gvr)
	if namespace != "" {
		on = b.client.Resource(gvr).Namespace(namespace)
	}
	name := ""
	if len(parts) > 1 {
		name = parts[1]
	}
	return b.call(r, on, name, parts[min(2, len(parts)):])
}

// call makes the call that a request is.
func (b overHTTP) call(r *http.Request, on dynamic.ResourceInterface, name string, part []string) (code int, answer any, err error) {
	query, ctx := r.URL.Query(), r.Context()
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return 0, nil, err
		}
	}
	o := &unstructured.Unstructured{}
	if slices.Contains([]string{http.MethodPost, http.MethodPut}, r.Method) {
		if body, err = yaml.YAMLToJSON(body); err == nil {
			err = o.UnmarshalJSON(bytes.TrimSpace(body))
		}
		if err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	list := metav1.ListOptions{LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector")}
	if _, err := labels.Parse(list.LabelSelector); err != nil {
		return 0, nil, err // the fake panics
	}
	if _, err := fields.ParseSelector(list.FieldSelector); err != nil {
		return 0, nil, err
	}
	manager := metav1.PatchOptions{FieldManager: query.Get("fieldManager")}
	switch {
	case query.Get("watch") != "":
		return 0, nil, apierrors.NewBadRequest("a watch of the fake has no version to begin with")
	case r.Method == http.MethodGet && name == "":
		answer, err = on.List(ctx, list)
	case r.Method == http.MethodGet:
		answer, err = on.Get(ctx, name, metav1.GetOptions{}, part...)
	case r.Method == http.MethodPost:
		answer, err = on.Create(ctx, o, metav1.CreateOptions{}, part...)
		code = http.StatusCreated
	case r.Method == http.MethodPut:
		answer, err = on.Update(ctx, o, metav1.UpdateOptions{}, part...)
	case r.Method == http.MethodPatch:
		answer, err = on.Patch(ctx, name, types.PatchType(r.Header.Get("Content-Type")), body, manager, part...)
	case r.Method == http.MethodDelete && name == "":
		err = on.DeleteCollection(ctx, metav1.DeleteOptions{}, list)
		answer = map[string]any{}
	case r.Method == http.MethodDelete:
		err = on.Delete(ctx, name, metav1.DeleteOptions{})
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	default:
		err = apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method)
	}
	return max(code, http.StatusOK), answer, err
}
