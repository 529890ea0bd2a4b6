package recording

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/secret"
	"github.com/kates-go/kates/internal/client/wire/frames"
)

// redactor takes secrets out of objects. It is safe for concurrent use.
//
// A value of a Secret becomes a text that is made from the value and a key, which nobody learns.
// So equal values stay equal, others differ, and nobody can try which value it was.
type redactor struct {
	key     []byte
	secrets bool // data of Secrets are taken out
	more    func(*unstructured.Unstructured)
}

func newRedactor(secrets bool, more func(*unstructured.Unstructured)) *redactor {
	r := &redactor{key: make([]byte, sha256.Size), secrets: secrets, more: more}
	_, _ = rand.Read(r.key) // never fails
	return r
}

// concerns reports whether the objects of a resource have to be looked at.
func (r *redactor) concerns(what target) bool {
	resource := what.resource
	if what.verb >= asking {
		return r.more != nil || r.secrets // what is there may be otherwise than the path says
	}
	return r.more != nil || r.secrets && resource == "secrets"
}

// mask returns what stands for a value.
func (r *redactor) mask(value string) string {
	h := hmac.New(sha256.New, r.key)
	_, _ = h.Write([]byte(value)) // never fails
	return "redacted-" + hex.EncodeToString(h.Sum(nil)[:8])
}

var errNotRedacted = errors.New("secrets in it could not be found")

// object redacts one object. What needs no redaction keeps its bytes. The error quotes nothing.
func (r *redactor) object(i item, resource string) (item, error) {
	u, err := i.untyped()
	if err != nil {
		return i, err
	}
	before := u.DeepCopy()
	if r.secrets && (resource == "secrets" || u.GetKind() == secret.Kind) {
		u.Object = secret.Hide(u.Object, r.value)
	}
	if err := r.users(u); err != nil {
		return i, err
	}
	if reflect.DeepEqual(before.Object, u.Object) {
		return i, nil
	}
	return i.with(u)
}

// users calls the user's function. The text of a panic may have a secret, so the error has none.
func (r *redactor) users(u *unstructured.Unstructured) error {
	if r.more == nil {
		return nil
	}
	err := guard.Call(func() error {
		r.more(u)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: the function that redacts panicked", errNotRedacted)
	}
	return nil
}

// untyped decodes an object.
func (i *item) untyped() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if i.encoding == frames.JSON {
		if err := utiljson.Unmarshal(i.raw, &u.Object); err != nil || u.Object == nil {
			return nil, fmt.Errorf("%w: an object is not JSON", errNotRedacted)
		}
		return u, nil
	}
	o, err := i.decode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRedacted, err)
	}
	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	return u, err
}

// with is the item with another content.
func (i *item) with(u *unstructured.Unstructured) (item, error) {
	to := *i
	var err error
	if i.encoding == frames.JSON {
		if to.raw, err = json.Marshal(u.Object); err != nil {
			return to, fmt.Errorf("%w: encode a redacted object", errNotRedacted)
		}
		return to, nil
	}
	empty := item{encoding: i.encoding, apiVersion: i.apiVersion, kind: i.kind}
	o, err := empty.decode()
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
	}
	if err == nil {
		to.raw, err = o.Marshal()
	}
	if err != nil {
		return to, fmt.Errorf("%w: encode a redacted %s", errNotRedacted, i.kind)
	}
	return to, nil
}

// general are the kinds of answers that have no objects in them.
var general = map[string]bool{
	statusKind: true, "APIVersions": true, "APIGroup": true, "APIGroupList": true, "APIResourceList": true,
	"APIGroupDiscoveryList": true,
}

// withoutObjects is an error for an answer that has an object, though its path or its status says
// that there is none. OpenAPI, the version and texts have no kind.
func withoutObjects(body []byte) error {
	i, ok := readObject(body)
	var said map[string]json.RawMessage
	switch {
	case ok && general[i.kind]:
		return nil
	case !ok && utf8.Valid(body) && bytes.IndexByte(body, 0) < 0: // nothing in protobuf is such a text
		text := bytes.TrimLeft(body, " \t\r\n")
		if len(text) == 0 || text[0] != '{' && text[0] != '[' {
			return nil
		}
		if json.Unmarshal(text, &said) == nil && (len(said) == 0 || said["paths"] != nil || said["gitVersion"] != nil) {
			return nil // OpenAPI, its index, or the version
		}
	}
	return fmt.Errorf("%w: it is an object where none should be", errNotRedacted)
}

// value is what stands for a value of a Secret, or of an annotation of one.
func (r *redactor) value(of any, encoded bool) any {
	masked := r.mask(fmt.Sprint(of))
	if encoded {
		masked = base64.StdEncoding.EncodeToString([]byte(masked))
	}
	return masked
}

// list redacts a list, or a page of it.
func (r *redactor) list(body []byte, resource string) ([]byte, error) {
	l, err := readList(body)
	if err != nil {
		return nil, fmt.Errorf("%w: the list cannot be read", errNotRedacted)
	}
	changed := false
	for n, i := range l.items {
		if l.items[n], err = r.object(i, resource); err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(l.items[n].raw, i.raw)
	}
	if !changed {
		return body, nil
	}
	return l.encode()
}

// event redacts an event of a watch. Errors of the server have no secrets.
func (r *redactor) event(frame []byte, resource string) ([]byte, error) {
	e, err := readEvent(frame)
	if err != nil {
		return nil, fmt.Errorf("%w: the event cannot be read", errNotRedacted)
	}
	if e.kind == watch.Error && e.item.kind == statusKind {
		return frame, nil
	}
	to, err := r.object(e.item, resource)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(to.raw, e.raw) {
		return frame, nil
	}
	e.item = to
	return e.encode()
}

// single redacts the answer to a get.
func (r *redactor) single(body []byte, resource string) ([]byte, error) {
	i, ok := readObject(body)
	if !ok || strings.HasSuffix(i.kind, "List") {
		return nil, fmt.Errorf("%w: the object cannot be read", errNotRedacted)
	}
	to, err := r.object(i, resource)
	if err != nil || bytes.Equal(to.raw, i.raw) {
		return body, err
	}
	return to.enveloped()
}

const statusKind = "Status"
