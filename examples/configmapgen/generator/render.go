package generator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/template"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// Problem is a mistake in what the user wrote. Another try would not help. A change of an input
// will, and brings the next call by itself.
type Problem struct {
	Reason  string // the condition's reason
	Message string // quotes no Secret
}

func (p *Problem) Error() string { return p.Message }

// render makes the ConfigMaps of a template. secret finds a Secret in its namespace, or returns
// nil. The error is a *Problem.
func render(root *ConfigTemplate, secret func(name string) *corev1.Secret) ([]kates.Object, error) {
	functions := template.FuncMap{"secret": func(name, key string) (string, error) { return value(secret(name), name, key) }}
	var all []kates.Object
	for _, wanted := range root.Spec.ConfigMaps {
		cm := &corev1.ConfigMap{Data: map[string]string{}}
		cm.Namespace, cm.Name = root.Namespace, root.Name+"-"+wanted.Name
		for _, key := range slices.Sorted(maps.Keys(wanted.Data)) {
			text, err := execute(root, wanted.Data[key], functions)
			if err != nil {
				return nil, problemOf(fmt.Sprintf("configMaps[%s].data[%s]", wanted.Name, key), err)
			}
			cm.Data[key] = text
		}
		all = append(all, cm)
	}
	return all, nil
}

// execute renders one template. {{.Name}} and {{.Namespace}} are the root's.
func execute(root *ConfigTemplate, text string, functions template.FuncMap) (string, error) {
	t, err := template.New("template").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct{ Name, Namespace string }{root.Name, root.Namespace})
	return out.String(), err
}

// value returns the value of {{secret "NAME" "KEY"}}.
func value(secret *corev1.Secret, name, key string) (string, error) {
	if secret == nil {
		return "", &Problem{"SecretNotFound", fmt.Sprintf("there is no secret %q", name)}
	}
	content, ok := secret.Data[key]
	if !ok {
		return "", &Problem{"SecretNotFound", fmt.Sprintf("secret %q has no %q", name, key)}
	}
	return string(content), nil
}

// problemOf returns the problem behind an error of a template: the one that a template function
// reported, or text/template's own message.
func problemOf(where string, err error) *Problem {
	problem := &Problem{"InvalidTemplate", err.Error()}
	errors.As(err, &problem)
	return &Problem{problem.Reason, where + ": " + problem.Message}
}
