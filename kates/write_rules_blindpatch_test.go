package kates_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

func owners(names ...string) (all []metav1.OwnerReference) {
	for _, name := range names {
		all = append(all, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID("uid-" + name)})
	}
	return all
}

// patches answers the patches of a config map with the result of answer, and reads of it with
// now.
func patches(s *wireServer, now *kates.ConfigMap, answer func(of, body string) *apierrors.StatusError) {
	s.one = func(r *http.Request) any {
		if r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			if refusal := answer(r.Header.Get("Content-Type"), string(must(body, err))); refusal != nil {
				return refusal
			}
		}
		return withKind(now)
	}
}

func TestModifyFromATypedWatchSendsOnlyWhatChangedInAListAndReadsNothing(t *testing.T) {
	x := versioned("x", "5")
	x.OwnerReferences = owners("a", "b")
	s := &wireServer{protobuf: true, objects: []any{x}}
	var sent []string
	patches(s, versioned("x", "6"), func(of, body string) *apierrors.StatusError {
		sent = append(sent, of+" "+body)
		return nil
	})
	c, _ := typedAlone(t, s)
	modify := func(change func(*kates.ConfigMap), opts ...kates.WriteOption) {
		t.Helper()
		_, err := kates.Modify(t.Context(), c, x, func(cm *kates.ConfigMap) error { change(cm); return nil }, append(opts, kates.DryRun())...)
		require.NoError(t, err)
		assert.Equal(t, []string{"PATCH"}, s.seen())
	}
	modify(func(cm *kates.ConfigMap) { cm.Finalizers = []string{"example.com/f"} })
	modify(func(cm *kates.ConfigMap) { cm.OwnerReferences = nil })
	modify(func(cm *kates.ConfigMap) {
		yes := true
		cm.OwnerReferences[1].Controller, cm.Data["a/b"] = &yes, "c"
		cm.OwnerReferences = append(cm.OwnerReferences[1:], owners("d")...)
	}, kates.IfUID(x.UID))
	require.Len(t, sent, 3)
	assert.Equal(t, `application/merge-patch+json {"metadata":{"finalizers":["example.com/f"],"resourceVersion":"5","uid":"uid-x"}}`, sent[0])
	assert.Equal(t, `application/merge-patch+json {"metadata":{"ownerReferences":null,"resourceVersion":"5","uid":"uid-x"}}`, sent[1])
	of, body, _ := strings.Cut(sent[2], " ")
	assert.Equal(t, "application/json-patch+json", of)
	assert.JSONEq(t, `[
		{"op":"test","path":"/metadata/uid","value":"uid-x"},
		{"op":"test","path":"/metadata/resourceVersion","value":"5"},
		{"op":"add","path":"/data/a~1b","value":"c"},
		{"op":"remove","path":"/metadata/ownerReferences/0"},
		{"op":"add","path":"/metadata/ownerReferences/1","value":{"apiVersion":"v1","kind":"Node","name":"d","uid":"uid-d"}},
		{"op":"add","path":"/metadata/ownerReferences/0/controller","value":true}]`, body)
}

func TestModifyReadsTheObjectWhereItsJSONPatchIsRefused(t *testing.T) {
	refusal := func(code int32, reason metav1.StatusReason) *apierrors.StatusError {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "so it is"}}
	}
	for name, c := range map[string]struct {
		json, merge *apierrors.StatusError
		is          func(error) bool
		version     string // of the object that is read
		options     []kates.WriteOption
		want        []string
	}{
		"what it was to go into is not there":     {json: refusal(422, metav1.StatusReasonInvalid), want: []string{"PATCH", "GET", "PATCH"}},
		"there is a newer version":                {json: refusal(422, metav1.StatusReasonInvalid), version: "6", want: []string{"PATCH", "GET", "PATCH"}},
		"there is a newer version, and none else": {json: refusal(422, metav1.StatusReasonInvalid), version: "6", options: []kates.WriteOption{kates.IfResourceVersion("5")}, is: kates.IsConflict, want: []string{"PATCH", "GET"}},
		"the server takes no such patches":        {json: refusal(415, metav1.StatusReasonUnsupportedMediaType), want: []string{"PATCH", "GET", "PATCH"}},
		"the object would be invalid": {
			json: refusal(422, metav1.StatusReasonInvalid), merge: refusal(422, metav1.StatusReasonInvalid), is: apierrors.IsInvalid,
			want: []string{"PATCH", "GET", "PATCH"},
		},
		"it is forbidden": {json: refusal(403, metav1.StatusReasonForbidden), is: apierrors.IsForbidden, want: []string{"PATCH"}},
	} {
		t.Run(name, func(t *testing.T) {
			x, calls := versioned("x", "5"), 0
			x.OwnerReferences = owners("a", "b")
			s := &wireServer{objects: []any{x}}
			now := x.DeepCopy()
			if c.version != "" {
				now.ResourceVersion = c.version
			}
			var last string
			patches(s, now, func(of, body string) *apierrors.StatusError {
				if last = body; strings.HasPrefix(of, "application/json-patch") {
					return c.json
				}
				return c.merge
			})
			client, _ := typedAlone(t, s)
			_, err := kates.Modify(t.Context(), client, x, func(cm *kates.ConfigMap) error {
				calls++
				cm.OwnerReferences[1].Kind = "Pod"
				return nil
			}, append(c.options, kates.DryRun())...)
			assert.Equal(t, c.want, s.seen())
			if c.is != nil {
				assert.True(t, c.is(err), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, 2, calls)
			var merge kates.ConfigMap
			require.NoError(t, json.Unmarshal([]byte(last), &merge))
			assert.Equal(t, now.ResourceVersion, merge.ResourceVersion)
			assert.Len(t, merge.OwnerReferences, 2)
		})
	}
}

func TestModifyFromATypedWatchEndsWithTheErrorOfItsChange(t *testing.T) {
	x := versioned("x", "5")
	x.OwnerReferences = owners("a")
	s := &wireServer{objects: []any{x}}
	patches(s, x, func(string, string) *apierrors.StatusError {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid}}
	})
	c, _ := typedAlone(t, s)
	mine, calls := errors.New("mine"), 0
	_, err := kates.Modify(t.Context(), c, x, func(cm *kates.ConfigMap) error {
		if calls++; calls == 2 {
			return mine
		}
		cm.OwnerReferences[0].Kind = "Pod"
		return nil
	})
	assert.Same(t, mine, err)
	assert.Equal(t, []string{"PATCH", "GET"}, s.seen())
}
