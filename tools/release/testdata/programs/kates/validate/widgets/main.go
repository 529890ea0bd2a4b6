// Command widgets validates an object of a custom kind without a server.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/validate"
)

const manifests = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer, minimum: 1}}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: small}
spec: {size: 0}
`

func main() {
	objects, err := kates.ParseManifestsToUnstructured(manifests)
	if err != nil {
		log.Fatal(err)
	}
	validator, err := validate.NewValidator(nil, objects[:1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(validator.Validate(context.Background(), objects[1]) != nil)
	// Output: true
}
