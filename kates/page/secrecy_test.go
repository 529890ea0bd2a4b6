package page

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

const planted = "planted-password"

var coded = base64.StdEncoding.EncodeToString([]byte(planted))

// ownSecret is a program's type for Secrets.
type ownSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data,omitempty"`
	Parsed            []string          `json:"parsed,omitempty"`
}

func (s *ownSecret) DeepCopyObject() runtime.Object { c := *s; return &c }

func (s *ownSecret) GroupVersionKind() schema.GroupVersionKind { return s.TypeMeta.GroupVersionKind() }

func secretMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "prod", Name: "db", Labels: map[string]string{"copy": planted},
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"k":"` + coded + `"}}`, "own": planted},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"v:` + planted + `":{}}}`),
		}},
	}
}

// secrets are the forms in which a client holds a Secret.
func secrets() map[string]kates.Object {
	untyped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"namespace": "prod", "name": "db", "annotations": map[string]any{"own": planted},
			"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"v:" + planted: map[string]any{}}}}},
		"data": map[string]any{"k": coded}, "stringData": map[string]any{"k": planted},
	}}
	nameless := untyped.DeepCopy()
	delete(nameless.Object, "kind")
	delete(nameless.Object, "apiVersion")
	nameless.Object["data"] = coded // no map
	return map[string]kates.Object{
		"typed":           &corev1.Secret{ObjectMeta: secretMeta(), Data: map[string][]byte{"k": []byte(planted)}, StringData: map[string]string{"s": planted}},
		"untyped":         untyped,
		"without a kind":  nameless,
		"its metadata":    &metav1.PartialObjectMetadata{ObjectMeta: secretMeta()},
		"a type of one's": &ownSecret{ObjectMeta: secretMeta(), Data: map[string]string{"k": coded}, Parsed: []string{strings.ToUpper(planted)}},
	}
}

// clean fails if an answer has the content of a Secret, in any coding.
func clean(t *testing.T, what, body string) {
	t.Helper()
	for _, s := range []string{planted, coded, url.QueryEscape(coded), strings.TrimRight(coded, "="), strings.ToUpper(planted)} {
		assert.NotContains(t, body, s, what)
	}
}

func TestSecretsAreNeverShownWhateverTheirForm(t *testing.T) {
	for name, o := range secrets() {
		t.Run(name, func(t *testing.T) {
			f := full()
			key := inspect.ObjectKey{Namespace: "prod", Name: "db"}
			other := o.DeepCopyObject().(kates.Object)
			other.SetResourceVersion("2")
			f.keys = []inspect.ObjectKey{key}
			f.has[key] = inspect.Object{
				Shown: o, Invalid: "the value " + planted + " is weak, " + coded,
				Streams: []inspect.ObjectInStream{{Stream: 2, Watched: o, Current: other, Write: &inspect.OwnWrite{Name: "db"}}},
			}
			f.bad = []inspect.InvalidObject{{ObjectKey: key, Why: "the value " + planted + " is weak"}}
			_, base := serve(t, client("one", f), graphs(t))
			for _, address := range []string{
				"derived", "derived?graph=graph&node=rows&key=prod%2Fa", "derived?graph=graph&node=all",
				"object?query=Secrets&watch=2&namespace=prod&name=db", "objects?query=Secrets&watch=2", "objects?query=Secrets&watch=2&invalid=1",
				"", "queries", "streams", "journal", "snapshots", "loops",
			} {
				for _, accept := range []string{"text/html", "application/json"} {
					body := ok(t, base+address, "Accept", accept)
					clean(t, address, body)
				}
			}
			body := ok(t, base+"object?query=Secrets&watch=2&namespace=prod&name=db")
			assert.Contains(t, body, hidden)
			assert.Contains(t, body, "metadata.resourceVersion")
		})
	}
}

func TestASecretThatAQueryOfAnythingElseHoldsIsHidden(t *testing.T) {
	f := full()
	key := inspect.ObjectKey{Namespace: "prod", Name: "db"}
	for _, o := range []kates.Object{secrets()["typed"], secrets()["untyped"]} {
		f.has[key] = inspect.Object{Shown: o, Streams: []inspect.ObjectInStream{{Stream: 1, Watched: o, Current: o}}}
		_, base := serve(t, client("one", f))
		clean(t, "a query of services", ok(t, base+"object?query=Services&watch=2&namespace=prod&name=db"))
	}
}

func TestThatHiddenValuesDifferIsShown(t *testing.T) {
	f := full()
	key := inspect.ObjectKey{Namespace: "prod", Name: "db"}
	then := secrets()["typed"].DeepCopyObject().(*corev1.Secret)
	then.Data["k"] = []byte("another")
	f.has[key] = inspect.Object{Shown: secrets()["typed"], Streams: []inspect.ObjectInStream{{Stream: 2, Watched: then, Current: then}}}
	p, _ := serve(t, client("one", f))
	s := p.stateNow("")
	of := p.objectPage(s.clients, url.Values{"query": {"Secrets"}, "watch": {"2"}, "namespace": {"prod"}, "name": {"db"}, "only": {"differing"}})
	require.Len(t, of.Fields, 1)
	assert.Equal(t, "data.k", of.Fields[0].Path)
	for _, v := range of.Fields[0].Values {
		assert.Equal(t, hidden, *v)
	}
}

func configMap() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "prod", "name": "a", "annotations": map[string]any{
			corev1.LastAppliedConfigAnnotation: `{"data":{"password":"pin12"}}`, "note": "it is " + planted + ", really",
		}},
		"data": map[string]any{"password": planted, "level": "info"},
	}}
}

func withConfigMap() *fabricated {
	f := full()
	o := configMap()
	f.has[inspect.ObjectKey{Namespace: "prod", Name: "a"}] = inspect.Object{
		Shown: o, Invalid: planted + " is weak", Streams: []inspect.ObjectInStream{{Stream: 1, Watched: o, Current: o}},
	}
	f.bad = []inspect.InvalidObject{{ObjectKey: inspect.ObjectKey{Namespace: "prod", Name: "a"}, Why: planted + " is weak"}}
	f.made.Loops[0].Failing[0].Error = "cannot log in with " + planted
	f.made.Watches[0].Queries[2].Error = "object prod/a does not decode: " + planted
	f.made.Watches[0].Queries[2].Start = "list: what is kept cannot be read: " + planted
	return f
}

func TestWhatARedactionHidesIsNowhereAndTheObjectStaysAsItIs(t *testing.T) {
	hide := func(u *kates.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "***", "data", "password")
	}
	f := withConfigMap()
	_, base := serve(t, client("one", f), secretive(t), Redact(hide))
	for _, address := range addresses() {
		for _, accept := range []string{"text/html", "application/json"} {
			body := ok(t, base+address, "Accept", accept)
			clean(t, address, body)
			assert.NotContains(t, body, "pin12", "the annotation with the applied object")
		}
	}
	body := ok(t, base+"object?query=Services&watch=2&namespace=prod&name=a")
	assert.Contains(t, body, "***")
	assert.Contains(t, body, "data.level")
	assert.Equal(t, configMap(), f.has[inspect.ObjectKey{Namespace: "prod", Name: "a"}].Shown)
	assert.Contains(t, ok(t, base), "forbidden: User", "why something is refused is shown")
}

func TestARedactionThatPanicsShowsNothing(t *testing.T) {
	_, base := serve(t, client("one", withConfigMap()), secretive(t), Redact(func(*kates.Unstructured) { panic(planted) }),
		RedactText(func(string) string { panic(planted) }))
	for _, address := range addresses() {
		body := ok(t, base+address)
		clean(t, address, body)
		assert.NotContains(t, body, "data.level")
	}
	assert.Contains(t, ok(t, base+"object?query=Services&watch=2&namespace=prod&name=a"), errRedact.Error())
}

func TestTextsOfErrorsAreChangedByRedactText(t *testing.T) {
	hide := func(s string) string { return strings.ReplaceAll(s, planted, "(hidden)") }
	_, base := serve(t, client("one", withConfigMap()), secretive(t), RedactText(hide))
	assert.Contains(t, ok(t, base+"derived"), "refused: (hidden) is weak")
	for _, address := range []string{"", "derived", "derived?graph=graph&node=broken&key=prod%2Fa", "loops", "queries", "objects?query=Services&watch=2&invalid=1"} {
		clean(t, address, ok(t, base+address))
	}
	assert.Contains(t, ok(t, base+"loops"), "cannot log in with (hidden)")
	assert.Contains(t, ok(t, base+"queries"), "list: what is kept cannot be read: (hidden)")
}

func TestAPageSaysHowAWatchBeganAndWhichPartItBrings(t *testing.T) {
	f := full()
	f.made.Watches[1].Queries[0].Start, f.made.Watches[1].Queries[0].Shard = "warm", "the server sends this share alone"
	_, base := serve(t, client("one", f), Redact(func(*kates.Unstructured) {}))
	for _, says := range []string{"start: warm", "part: the server sends this share alone"} {
		assert.Contains(t, ok(t, base+"queries"), says)
	}
}

func TestNamesAndTextsThatAreHTMLAreShownAsText(t *testing.T) {
	const nasty = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	f := full()
	f.made.Server = nasty
	for _, w := range f.made.Watches {
		w.Name, w.Incomplete = nasty, nasty
		for _, q := range w.Queries {
			q.Kind, q.Error = nasty, nasty
		}
	}
	f.made.Watches[1].Queries[0].Name = nasty
	f.made.Loops[0].Name, f.made.Loops[0].Failing[0].Error = nasty, nasty
	f.keys = []inspect.ObjectKey{{Namespace: nasty, Name: nasty}}
	o := configMap()
	o.Object["data"] = map[string]any{nasty: nasty}
	f.has[f.keys[0]] = inspect.Object{Shown: o, Invalid: nasty}
	p, base := serve(t, client(nasty, f), graphNamed(t, nasty, nasty))
	p.recent.add(nasty, p.stateNow("").at, &kates.UpdateInfo{Watch: nasty, Changes: 1, Each: func(yield func(q, ns, n string, t kates.DeltaType) bool) {
		yield(nasty, nasty, nasty, kates.ObjectAdd)
	}})
	q := url.QueryEscape(nasty)
	for _, address := range append(addresses(), "?client="+q, "queries?client="+q, "objects?query="+q, "derived?graph="+q+"&node="+q+"&key="+q, "object?query="+q+"&namespace="+q+"&name="+q) {
		body := ok(t, base+address)
		assert.NotContains(t, body, "<script>alert", address)
		assert.NotContains(t, body, "<img", address)
	}
}
