package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Call is a request with which a program does something.
type Call struct {
	// Verb, Group and so on are those of katestest.Request. A name of an object that is created
	// comes from the object.
	Verb, Group, Resource, Subresource, Namespace, Name string
	Query                                               url.Values
	// Status is the code of the answer, 0 if none came.
	Status int
	// Object is the answer, if that is an object; Before is what the calls before have shown of
	// it. Either may be nil.
	Object, Before map[string]any

	open bool // it is not over
}

// String is the call's verb, kind, and object.
func (c *Call) String() string {
	kind, _ := c.Object["kind"].(string)
	if kind == "" || kind == "Status" {
		kind = c.Resource
	}
	if c.Subresource != "" {
		kind += "/" + c.Subresource
	}
	text := c.Verb + " " + kind + " " + strings.Trim(c.Namespace+"/"+c.Name, "/")
	return strings.TrimSuffix(text, " ")
}

// outcome is the call with its answer.
func (c *Call) outcome() string {
	switch {
	case c.open:
		return c.String() + ": waits for its answer"
	case c.Status == 0:
		return c.String() + ": no answer"
	}
	return fmt.Sprintf("%s: %d", c.String(), c.Status)
}

// same reports whether two calls are of one kind in two rounds of a loop. Objects that are created
// have new names in each round.
func (c *Call) same(other *Call) bool {
	return c.Verb == other.Verb && c.Group == other.Group && c.Resource == other.Resource &&
		c.Subresource == other.Subresource && c.Namespace == other.Namespace && c.Status == other.Status &&
		(c.Verb == "create" || c.Name == other.Name)
}

func (c *Call) key() string {
	return c.Group + "/" + c.Resource + "/" + c.Namespace + "/" + c.Name
}

// writes reports whether the call changes what the server stores.
func (c *Call) writes() bool {
	stored := c.Group != "authorization.k8s.io" && c.Group != "authentication.k8s.io" && c.Subresource != "token"
	return stored && !c.Query.Has("dryRun") && c.Verb != "get"
}

// answer is what a call has brought.
type answer struct {
	status int
	object map[string]any
}

// read reads an answer, and leaves it to be read again.
func read(resp *http.Response) (answer, error) {
	a := answer{status: resp.StatusCode}
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it is read
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	if err == nil && resp.StatusCode < http.StatusBadRequest {
		a.object = objectOf(resp.Header.Get("Content-Type"), raw)
	}
	return a, err
}

// over notes the answer of the call.
func (c *Call) over(a answer) {
	c.open, c.Status, c.Object = false, a.status, a.object
	if c.Name == "" {
		c.Name = nameOf(a.object)
	}
}

// objectOf decodes an object, or returns nil.
func objectOf(contentType string, raw []byte) (object map[string]any) {
	media, _, _ := mime.ParseMediaType(contentType) // if it is wrong, it is none of those
	switch media {
	case runtime.ContentTypeJSON:
		if utiljson.Unmarshal(raw, &object) != nil {
			return nil
		}
	case runtime.ContentTypeProtobuf:
		o, gvk, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return nil
		}
		o.GetObjectKind().SetGroupVersionKind(*gvk)
		if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil
		}
	}
	if object["kind"] == "Status" {
		return nil
	}
	return object
}

// sentName is the name in an object that is sent to be created.
func sentName(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		object = objectOf(r.Header.Get("Content-Type"), raw)
	}
	return nameOf(object)
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
