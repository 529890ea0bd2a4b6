package hostile

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// with returns a lie: a watch that brings a config map that was changed before, and ends.
func with(change func(*corev1.ConfigMap)) func(*answer) {
	return func(a *answer) {
		a.start()
		o := configMap("lie", "900")
		change(o)
		a.event("ADDED", o)
	}
}

// brings returns a watch that brings one event, whose object has these bytes.
func brings(kind, object string) func(*answer) {
	return func(a *answer) {
		a.start()
		a.raw(kind, []byte(object))
	}
}

// sends returns an event in the form that was asked for, with any object.
func sends(kind string, o runtime.Object) func(*answer) {
	return func(a *answer) {
		a.start()
		a.event(kind, o)
	}
}

// marks returns a watch that brings a bookmark and ends.
func marks(version string) func(*answer) {
	return func(a *answer) {
		a.start()
		a.bookmark(version, false)
	}
}

const ended = "as soon as it was open"

// endings are watches that end, and bring nothing new.
var endings = []lie{
	{name: "it brings an old event, and ends", says: ended, tell: func(a *answer) {
		a.start()
		a.event("MODIFIED", configMap("x", "101"))
	}},
	{name: "it brings the event that was last, and ends", says: ended, tell: func(a *answer) {
		a.start()
		a.event("MODIFIED", configMap("x", "102"))
	}},
	{name: "it brings an old event of another object, and ends", says: ended, tell: func(a *answer) {
		a.start()
		a.event("ADDED", configMap("old", "50"))
	}},
	{name: "it brings an old deletion, and ends", says: ended, tell: func(a *answer) {
		a.start()
		a.event("DELETED", configMap("x", "101"))
	}},
	{name: "it brings many old events, and ends", says: ended, tell: func(a *answer) {
		a.start()
		for range 100 {
			a.event("MODIFIED", configMap("x", "101"))
		}
	}},
	{name: "it brings an old event, and stays", watches: 6, tell: func(a *answer) {
		a.start()
		a.event("MODIFIED", configMap("x", "101"))
		a.hold()
	}},
	{name: "it brings the bookmark that was last, and ends", says: ended, tell: marks("102")},
	{name: "it brings nothing, and ends", says: ended, tell: func(a *answer) { a.start() }},
	{name: "it brings nothing, and stays", watches: 6, tell: func(a *answer) { a.start(); a.hold() }},
	{name: "it never answers", says: "no answer within 30s", watches: 20, tell: func(a *answer) { a.hold() }},
}

// objects are events of objects that cannot be.
var objects = []lie{
	{name: "a Secret", says: "kind Secret (v1) in place of a ConfigMap (v1)", tell: sends("ADDED", secret()), forms: []string{untyped, typed, proto}},
	{name: "the metadata of a Secret", says: "kind Secret (v1) in place of a ConfigMap (v1)", forms: []string{short}, tell: sends("ADDED", secret())},
	{name: "an unknown kind", says: "kind Lie (v1) in place of a ConfigMap", forms: inJSON, tell: with(func(o *corev1.ConfigMap) { o.Kind = "Lie" })},
	{name: "the kind of another group", says: "kind ConfigMap (example.com/v1) in place of a ConfigMap", forms: inJSON, tell: with(func(o *corev1.ConfigMap) { o.APIVersion = "example.com/v1" })},
	{name: "no kind", says: "does not say what it is", forms: []string{untyped}, tell: with(func(o *corev1.ConfigMap) { o.Kind = "" })},
	{name: "metadata for a whole object", says: "kind PartialObjectMetadata (meta.k8s.io/v1) in place of a ConfigMap", forms: []string{untyped, typed, proto}, tell: sends("ADDED", shortened(configMap("lie", "900")))},
	{name: "another namespace", says: `in the namespace "other", where "default" was asked for`, tell: with(func(o *corev1.ConfigMap) { o.Namespace = "other" })},
	{name: "a deletion in another namespace", says: `in the namespace "other", where "default" was asked for`, tell: func(a *answer) {
		a.start()
		o := configMap("x", "900")
		o.Namespace = "other"
		a.event("DELETED", o)
	}},
	{name: "no namespace", says: `in the namespace "", which cannot be`, tell: with(func(o *corev1.ConfigMap) { o.Namespace = "" })},
	{name: "a namespace with a slash", says: `in the namespace "a/b", which cannot be`, tell: with(func(o *corev1.ConfigMap) { o.Namespace = "a/b" })},
	{name: "no name", says: "without a name", tell: with(func(o *corev1.ConfigMap) { o.Name = "" })},
	{name: "a name with a slash", says: `the name "a/b", which cannot be`, tell: with(func(o *corev1.ConfigMap) { o.Name = "a/b" })},
	{name: "a name of dots", says: `the name "..", which cannot be`, tell: with(func(o *corev1.ConfigMap) { o.Name = ".." })},
	{name: "a name that is far too long", says: "which cannot be", tell: with(func(o *corev1.ConfigMap) { o.Name = strings.Repeat("a/", bound/8) })},
	{name: "no version", says: "an event without a version", tell: with(func(o *corev1.ConfigMap) { o.ResourceVersion = "" })},
	{name: "version 0", says: `at version "0", which is no version`, tell: with(func(o *corev1.ConfigMap) { o.ResourceVersion = "0" })},
	{name: "a version that is no number", says: `at version "9e9", which is no version`, tell: with(func(o *corev1.ConfigMap) { o.ResourceVersion = "9e9" })},
	{name: "a negative version", says: `at version "-900", which is no version`, tell: with(func(o *corev1.ConfigMap) { o.ResourceVersion = "-900" })},
	{name: "a deletion without a version", says: "an event without a version", tell: func(a *answer) {
		a.start()
		a.event("DELETED", configMap("x", ""))
	}},
	{name: "no object", says: "without an object", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"type":"ADDED"}` + "\n") }},
	{name: "no object in the frame", says: "without an object", forms: protobufs, tell: brings("ADDED", "")},
	{name: "null", says: "ADDED event: ", forms: inJSON, tell: brings("ADDED", "null")},
	{name: "a number", says: "ADDED event: ", forms: inJSON, tell: brings("ADDED", "7")},
	{name: "an array", says: "ADDED event: ", forms: inJSON, tell: brings("ADDED", "[]")},
	{name: "an empty object", says: "ADDED event: ", forms: inJSON, tell: brings("ADDED", "{}")},
	{name: "metadata that is a number", says: "without a name", forms: inJSON, tell: brings("ADDED", `{"kind":"ConfigMap","apiVersion":"v1","metadata":7}`)},
	{name: "an unknown type", says: `unknown type "CHANGED"`, tell: sends("CHANGED", configMap("lie", "900"))},
	{name: "no type", says: `unknown type ""`, tell: sends("", configMap("lie", "900"))},
	{name: "a type that is a number", says: "cannot unmarshal number", forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":7,"object":{"kind":"ConfigMap"}}`)
	}},
	{name: "two types", says: `"type" twice`, forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":"DELETED","type":"ADDED","object":{"kind":"ConfigMap"}}`)
	}},
	{name: "a member that the object has twice", says: "it is damaged", forms: inJSON, tell: brings("ADDED",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"y","uid":"u","resourceVersion":"900","uid":"v"}}`)},
	{name: "JSON that is no UTF-8", says: "it is no valid UTF-8", forms: inJSON, tell: brings("ADDED",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"y","uid":"`+"\xff"+`","resourceVersion":"900"}}`)},
	{name: "two objects", says: `"object" twice`, forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":"ADDED","object":{"kind":"ConfigMap"},"object":{"kind":"ConfigMap"}}`)
	}},
}

func secret() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: configMap("lie", "900").ObjectMeta, Data: map[string][]byte{"password": []byte("hidden")},
	}
}

// positions are bookmarks that say nothing, or go back.
var positions = []lie{
	{name: "a bookmark without a version", says: "a bookmark without a version", tell: marks("")},
	{name: "a bookmark at 0", says: `a bookmark at version "0", which is no version`, tell: marks("0")},
	{name: "a bookmark that is no number", says: `a bookmark at version "soon", which is no version`, tell: marks("soon")},
	{name: "a bookmark without an object", says: "BOOKMARK event: ", forms: inJSON, tell: brings("BOOKMARK", `[]`)},
	{name: "a bookmark that goes back, and an end", says: ended, tell: marks("50")},
	{name: "a bookmark that goes back, and no end", says: "a bookmark at version 50, and the watch was at 102 before", watches: 6, tell: func(a *answer) {
		a.start()
		a.bookmark("50", false)
		a.hold()
	}},
	{name: "the bookmark that ends a list", watches: 6, tell: func(a *answer) {
		a.start()
		a.bookmark("102", true)
		a.bookmark("102", true)
		a.hold()
	}},
}
