package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	numbers "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// InstallCRDs creates the CustomResourceDefinitions in the files and folders of paths, or updates
// those that exist, and returns when discovery serves them. Of a folder it reads the files that
// end in .yaml, .yml or .json, and no folders below. Objects of other kinds are left out. A path
// without a definition is an error.
func (c *Cluster) InstallCRDs(ctx context.Context, paths ...string) error {
	return InstallCRDs(ctx, c.Config, paths...)
}

// InstallCRDs does that on any server, such as one that [Cluster.AddServer] has added.
func InstallCRDs(ctx context.Context, config *rest.Config, paths ...string) error {
	all, err := readDefinitions(paths)
	if err == nil {
		err = install(ctx, config, all)
	}
	if err != nil {
		return fmt.Errorf("install custom resources: %w", err)
	}
	return nil
}

// readDefinitions reads all files and folders of paths.
func readDefinitions(paths []string) (all []*unstructured.Unstructured, err error) {
	for _, path := range paths {
		found, err := definitionsIn(path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func install(ctx context.Context, config *rest.Config, all []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, crd := range all {
		if err := createOrUpdate(ctx, client.Resource(definitions), crd); err != nil {
			return fmt.Errorf("%s: %w", crd.GetName(), err)
		}
	}
	return waitServed(ctx, config, all)
}

// definitionsIn reads the file or the folder at path.
func definitionsIn(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		files = nil
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		found, err := definitionsInFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no CustomResourceDefinition", path)
	}
	return all, nil
}

func definitionsInFile(file string) (all []*unstructured.Unstructured, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var document json.RawMessage
		object := &unstructured.Unstructured{}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && len(document) > 0 {
			err = numbers.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, err
		}
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if object.GetAPIVersion() != definitions.GroupVersion().String() {
			return nil, fmt.Errorf("%s has apiVersion %q: the server takes %s only",
				object.GetName(), object.GetAPIVersion(), definitions.GroupVersion())
		}
		all = append(all, object)
	}
}

func createOrUpdate(ctx context.Context, client dynamic.ResourceInterface, crd *unstructured.Unstructured) error {
	_, err := client.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		existing, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd = crd.DeepCopy()
		crd.SetResourceVersion(existing.GetResourceVersion())
		_, err = client.Update(ctx, crd, metav1.UpdateOptions{})
		return err
	})
}

// waitServed waits until discovery has each version that the definitions want served.
func waitServed(ctx context.Context, config *rest.Config, crds []*unstructured.Unstructured) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		last = nil
		for len(crds) > 0 && last == nil {
			if last = served(client, crds[0]); last == nil {
				crds = crds[1:]
			}
		}
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// served returns an error if discovery lacks a version of the definition.
func served(client discovery.DiscoveryInterface, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if is, _ := version["served"].(bool); !is {
			continue
		}
		groupVersion := group + "/" + name
		list, err := client.ServerResourcesForGroupVersion(groupVersion)
		if err != nil {
			return fmt.Errorf("%s is not served: %w", groupVersion, err)
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			return fmt.Errorf("%s is not served in %s", plural, groupVersion)
		}
	}
	return nil
}
