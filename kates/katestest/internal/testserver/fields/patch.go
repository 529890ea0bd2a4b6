package fields

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// mostOperations is how many operations a JSON patch may have.
const mostOperations = 10000

// Patch applies a patch to the content of an object. The errors are those of the API server.
func Patch(scheme *runtime.Scheme, k *kinds.Kind, how types.PatchType, content map[string]any, body []byte) (map[string]any, error) {
	if !json.Valid(body) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch how {
	case types.JSONPatchType:
		return throughJSON(content, func(old []byte) ([]byte, error) { return patchJSON(old, body) })
	case types.MergePatchType:
		var patch map[string]any
		if err := utiljson.Unmarshal(body, &patch); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		return throughJSON(content, func(old []byte) ([]byte, error) { return jsonpatch.MergePatch(old, body) })
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	of, err := scheme.New(k.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(of)
	if err != nil {
		return nil, err
	}
	patched, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(runtime.DeepCopyJSON(content), patch, lookup)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(422, "", k.GR(), "", err.Error(), 0, false)
	}
	return patched, nil
}

func patchJSON(old, body []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(body)
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case len(patch) > mostOperations:
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", mostOperations, len(patch)))
	}
	patched, err := patch.Apply(old)
	var missing *json.SyntaxError
	switch {
	case errors.As(err, &missing):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, nil
}

func throughJSON(content map[string]any, patch func([]byte) ([]byte, error)) (map[string]any, error) {
	old, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	raw, err := patch(old)
	if err != nil {
		return nil, err
	}
	var now map[string]any
	if err := utiljson.Unmarshal(raw, &now); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patched object: %v", err))
	}
	return now, nil
}
