package kates_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// planted is the content of a Secret, and coded is what JSON has of it.
const planted = "planted-content-of-a-secret"

var coded = base64.StdEncoding.EncodeToString([]byte(planted))

// hostile answers every request about Secrets with the same text.
type hostile struct {
	code int
	body string
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "/secrets") {
		siteDiscovery(w, r.URL.Path)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(h.code)
	_, _ = w.Write([]byte(h.body))
}

// hostileAnswers have the content of a Secret where nobody expects it.
var hostileAnswers = map[string]hostile{
	"no kind":          {200, `{"apiVersion":"v1","metadata":{"name":"x"},"data":{"k":"` + coded + `"}}`},
	"no version":       {200, `{"kind":"Secret","metadata":{"name":"x"},"data":{"k":"` + coded + `"}}`},
	"an empty kind":    {200, `{"kind":"","apiVersion":"v1","data":{"k":"` + coded + `"}}`},
	"cut":              {200, `{"kind":"Secret","apiVersion":"v1","data":{"k":"` + coded},
	"text":             {200, coded},
	"text after it":    {200, `{"kind":"Secret","apiVersion":"v1"}` + coded},
	"a string":         {200, `"` + coded + `"`},
	"its metadata":     {200, `{"kind":"Secret","apiVersion":"v1","metadata":"` + planted + `"}`},
	"its time":         {200, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x","creationTimestamp":"` + planted + `"}}`},
	"its data":         {200, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"},"data":"` + planted + `"}`},
	"its value":        {200, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"},"data":{"k":"` + planted + `!"}}`},
	"a value of it":    {200, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"},"data":{"k":{"` + planted + `":1}}}`},
	"an item's kind":   {200, `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[{"data":{"k":"` + coded + `"}}]}`},
	"items":            {200, `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":"` + coded + `"}`},
	"an item":          {200, `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":["` + coded + `"]}`},
	"an event":         {200, `{"type":"ADDED","object":{"data":{"k":"` + coded + `"}}}`},
	"an event's error": {200, `{"type":"ERROR","object":{"data":{"k":"` + coded + `"}}}`},
	"a key twice": {200, `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"x"},` +
		`"data":{"` + planted + `":"YQ==","` + planted + `":"Yg=="}}]}`},
	"invalid": {422, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,` +
		`"message":"Secret \"x\" is invalid: data[k]: Invalid value: \"` + planted + `\": no; \"` + coded + `\"",` +
		`"details":{"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"` + planted + `\"","field":"data[k]"}]}}`},
	"refused by a webhook": {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
		`"message":"admission webhook \"w\" denied the request: ` + planted + ` is weak"}`},
	"a conflict": {409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"` + coded + `"}`},
	"an error":   {500, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"cannot unmarshal ` + planted + `"}`},
}

func secretObject() *kates.Secret {
	return &kates.Secret{
		TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: kates.ObjectMeta{Namespace: "ns", Name: "x", ResourceVersion: "1"},
		Data: map[string][]byte{"k": []byte(planted)}, StringData: map[string]string{"s": planted},
	}
}

// secretRequests are requests about a Secret. What those that write send has the content, so that
// a server may say it.
var secretRequests = map[string]struct {
	writes bool
	do     func(ctx context.Context, c *kates.Client) error
}{
	"Get": {false, func(ctx context.Context, c *kates.Client) error {
		return c.Get(ctx, secretObject(), &kates.Secret{})
	}},
	"Get, untyped": {false, func(ctx context.Context, c *kates.Client) error {
		return c.Get(ctx, secretObject(), &kates.Unstructured{})
	}},
	"List": {false, func(ctx context.Context, c *kates.Client) error {
		return c.List(ctx, kates.Query{Kind: "secrets"}, &[]*kates.Secret{})
	}},
	"Create": {true, func(ctx context.Context, c *kates.Client) error {
		s := secretObject()
		s.ResourceVersion = ""
		return c.Create(ctx, s, &kates.Secret{})
	}},
	"Update": {true, func(ctx context.Context, c *kates.Client) error { return c.Update(ctx, secretObject(), nil) }},
	"Upsert": {true, func(ctx context.Context, c *kates.Client) error { return c.Upsert(ctx, nil, secretObject(), nil) }},
	"Apply":  {true, func(ctx context.Context, c *kates.Client) error { return c.Apply(ctx, secretObject(), nil) }},
	"Patch": {true, func(ctx context.Context, c *kates.Client) error {
		return c.Patch(ctx, secretObject(), kates.StrategicMergePatchType, []byte(`{"stringData":{"k":"`+planted+`"}}`), nil)
	}},
	"JSON patch": {true, func(ctx context.Context, c *kates.Client) error {
		patch := []byte(`[{"op":"add","path":"/data/k","value":"` + coded + `"}]`)
		return c.Patch(ctx, secretObject(), kates.JSONPatchType, patch, nil, kates.IfUID("u"))
	}},
	"a broken patch": {true, func(ctx context.Context, c *kates.Client) error {
		return c.Patch(ctx, secretObject(), kates.MergePatchType, []byte(`{"stringData":{"k":"`+planted), nil, kates.IfUID("u"))
	}},
	"a broken JSON patch": {true, func(ctx context.Context, c *kates.Client) error {
		return c.Patch(ctx, secretObject(), kates.JSONPatchType, []byte(`["`+planted), nil, kates.IfUID("u"))
	}},
	"Modify": {true, func(ctx context.Context, c *kates.Client) error {
		_, err := kates.Modify(ctx, c, secretObject(), func(s *kates.Secret) error {
			s.StringData = map[string]string{"k": planted}
			return nil
		})
		return err
	}},
	"Delete": {true, func(ctx context.Context, c *kates.Client) error { return c.Delete(ctx, secretObject(), nil) }},
	"DeleteAll": {false, func(ctx context.Context, c *kates.Client) error {
		return c.DeleteAll(ctx, kates.Query{Kind: "secrets"})
	}},
}

// wholeLog is a log of everything.
type wholeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *wholeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *wholeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// secretClient returns a client of a hostile server.
func secretClient(t *testing.T, h hostile) (*kates.Client, *wholeLog) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	log := &wholeLog{}
	all := slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-100)})
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL}, kates.WithLogger(slog.New(all)), kates.WithNamespace("ns"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, log
}

// withheld fails the test if a text has the content of the Secret.
func withheld(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{planted, coded, planted[4:14], coded[8:18], strings.Trim(fmt.Sprint([]byte(planted)), "[]")} {
		assert.NotContains(t, text, form, what)
	}
}

// texts are all that an error may be made to say.
func texts(err error) string {
	all := ""
	for ; err != nil; err = inner(err) {
		asJSON, _ := json.Marshal(err)
		all += fmt.Sprintf("%v\n%+v\n%s\n", err, err, asJSON)
	}
	return all
}

func inner(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

func TestNoErrorOfARequestQuotesASecret(t *testing.T) {
	for answer, h := range hostileAnswers {
		c, log := secretClient(t, h)
		for name, r := range secretRequests {
			if !r.writes && h.code >= 400 {
				continue // the server's own words, of something that this client does not have
			}
			withheld(t, name+", "+answer, texts(r.do(t.Context(), c)))
		}
		withheld(t, "the log, "+answer, log.String())
	}
}

func TestNoStatusOfAWatchQuotesASecret(t *testing.T) {
	type typed struct{ Secrets []*kates.Secret }
	type untyped struct {
		Secrets []*kates.Unstructured `kates:"secrets"`
	}
	type brief struct {
		Secrets []*kates.PartialObjectMetadata `kates:"secrets"`
	}
	for answer, h := range hostileAnswers {
		if h.code >= 400 {
			continue
		}
		for name, watch := range map[string]func(ctx context.Context, c *kates.Client) error{
			"typed":   func(ctx context.Context, c *kates.Client) error { _, err := kates.Watch[typed](ctx, c); return err },
			"untyped": func(ctx context.Context, c *kates.Client) error { _, err := kates.Watch[untyped](ctx, c); return err },
			"brief":   func(ctx context.Context, c *kates.Client) error { _, err := kates.Watch[brief](ctx, c); return err },
		} {
			c, log := secretClient(t, h)
			withheld(t, name+", "+answer, texts(watch(t.Context(), c)))
			require.Eventually(t, func() bool {
				s := c.Status()
				return len(s.Queries) == 1 && (s.Queries[0].Error != "" || s.Queries[0].State == kates.StateSynced)
			}, time.Minute, time.Millisecond, "%s, %s", name, answer)
			s := c.Status()
			asJSON, err := json.Marshal(s)
			require.NoError(t, err)
			withheld(t, name+", "+answer, s.String()+string(asJSON)+texts(s.Err())+log.String())
		}
	}
}

// TestNoErrorQuotesWhatAPatchSendsAlone: the resource names the Secret, and has no data.
func TestNoErrorQuotesWhatAPatchSendsAlone(t *testing.T) {
	named := &kates.Secret{ObjectMeta: kates.ObjectMeta{Namespace: "ns", Name: "x"}}
	s := newSite("uid")
	s.put("secrets", "x", thing("Secret", "x", 1))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			hostileAnswers["invalid"].ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	defer c.Close()
	for name, write := range map[string]func() error{
		"Patch": func() error {
			return c.Patch(t.Context(), named, kates.MergePatchType, []byte(`{"stringData":{"k":"`+planted+`"}}`), nil)
		},
		"JSON patch": func() error {
			return c.Patch(t.Context(), named, kates.JSONPatchType, []byte(`[{"op":"add","path":"/data/k","value":"`+coded+`"}]`), nil)
		},
		"Modify": func() error {
			_, err := kates.Modify(t.Context(), c, named, func(s *kates.Secret) error {
				s.StringData = map[string]string{"k": planted}
				return nil
			})
			return err
		},
	} {
		err := write()
		withheld(t, name, texts(err))
		assert.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
		assert.ErrorContains(t, err, "data[k]: Invalid value: \"(withheld)\"", "the rest is said")
	}
}
