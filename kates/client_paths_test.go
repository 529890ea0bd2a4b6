package kates

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

// TestNoNameMakesARequestOneForSomethingElse: a program may take a name from text that a user of
// the cluster wrote. The object "." of a namespace is all objects of the kind, and ".." is the
// namespace.
func TestNoNameMakesARequestOneForSomethingElse(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	s := kindstest.New(t, false)
	s.Change(func() {
		s.Hook = func(r *http.Request) {
			if mu.Lock(); strings.Contains(r.URL.Path, "/namespaces/") || strings.Contains(r.URL.Path, "/pods") {
				asked = append(asked, r.Method+" "+r.URL.Path)
			}
			mu.Unlock()
		}
	})
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL}, WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close()
	for _, at := range [][2]string{{"ns", "."}, {"ns", ".."}, {"ns", "x/log"}, {"ns", "x%2flog"}, {"..", "x"}, {"ns/pods/x", "y"}} {
		pod := &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: at[0], Name: at[1]}}
		for verb, do := range map[string]func(context.Context) error{
			"get":    func(ctx context.Context) error { return c.Get(ctx, pod, nil) },
			"create": func(ctx context.Context) error { return c.Create(ctx, pod, nil) },
			"update": func(ctx context.Context) error { return c.Update(ctx, pod, nil) },
			"status": func(ctx context.Context) error { return c.UpdateStatus(ctx, pod, nil) },
			"upsert": func(ctx context.Context) error { return c.Upsert(ctx, pod, pod, nil) },
			"patch":  func(ctx context.Context) error { return c.Patch(ctx, pod, MergePatchType, []byte("{}"), nil) },
			"apply":  func(ctx context.Context) error { return c.Apply(ctx, pod, nil) },
			"delete": func(ctx context.Context) error { return c.Delete(ctx, pod, nil) },
			"modify": func(ctx context.Context) error {
				_, err := Modify(ctx, c, pod, func(*Pod) error { return nil })
				return err
			},
		} {
			// no path has an invalid name: the server refuses it
			if verb != "create" || at[0] != "ns" {
				assert.ErrorContains(t, do(t.Context()), "invalid name", "%s %v", verb, at)
			}
		}
		if at[0] != "ns" {
			query := Query{Name: "Pods", Kind: "Pod", Namespace: at[0]}
			assert.ErrorContains(t, c.List(t.Context(), query, &[]*Pod{}), fmt.Sprintf("namespace %q", at[0]))
			_, err := c.Watch(t.Context(), query)
			assert.ErrorContains(t, err, fmt.Sprintf("namespace %q", at[0]))
			query.Namespace, query.Namespaces = "", []string{"ns", at[0]}
			_, err = c.Watch(t.Context(), query)
			assert.ErrorContains(t, err, fmt.Sprintf("namespace %q", at[0]))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, asked)
}
