package kates_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// answering is a client of a server that has one answer for each method.
func answering(t *testing.T, answers map[string]any) *kates.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if s, ok := answers[r.Method].(*metav1.Status); ok {
			w.WriteHeader(int(s.Code))
		}
		_ = json.NewEncoder(w).Encode(answers[r.Method])
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL}, kates.WithRESTMapper(mapper))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func refusal(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func TestTheErrorOfADeletionHasWhatTheServerSaid(t *testing.T) {
	c := answering(t, map[string]any{http.MethodDelete: refusal(422, metav1.StatusReasonInvalid, "denied by a policy")})
	assert.ErrorContains(t, c.Delete(context.Background(), configMap("x"), nil), "denied by a policy")
}

func TestAJSONPatchWhosePreconditionDoesNotHoldIsAConflict(t *testing.T) {
	stored := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"}}
	c := answering(t, map[string]any{
		http.MethodGet:   stored,
		http.MethodPatch: refusal(422, metav1.StatusReasonInvalid, "the server rejected our request due to an error in our request"),
	})
	for name, test := range map[string]struct {
		cond     kates.WriteOption
		conflict bool
	}{
		"another UID":         {kates.IfUID("other"), true},
		"another version":     {kates.IfResourceVersion("6"), true},
		"the same UID":        {kates.IfUID("u"), false}, // then something else is wrong with the patch
		"the same version":    {kates.IfResourceVersion("7"), false},
		"no precondition set": {kates.FieldOwner("me"), false},
	} {
		err := c.Patch(context.Background(), configMap("x"), kates.JSONPatchType, []byte(`[]`), nil, test.cond)
		require.Error(t, err)
		assert.Equal(t, test.conflict, kates.IsConflict(err), "%s: %v", name, err)
	}
}
