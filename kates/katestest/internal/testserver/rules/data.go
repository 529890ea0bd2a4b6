package rules

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// mostData is how many bytes of data a config map or a secret may have.
const mostData = 1 << 20

// dataValid checks the keys and the size of the data of a config map or a secret.
func dataValid(k *kinds.Kind, c Content) (errs field.ErrorList) {
	if k.Group != "" || k.Kind != "ConfigMap" && k.Kind != "Secret" {
		return nil
	}
	data, _ := c["data"].(map[string]any)
	binary, _ := c["binaryData"].(map[string]any)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(data)) {
		at := field.NewPath("data").Key(key)
		for _, says := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(at, key, says))
		}
		if _, twice := binary[key]; twice {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		text, _ := data[key].(string)
		if k.Kind == "Secret" {
			size += base64.StdEncoding.DecodedLen(len(text))
		} else {
			size += len(text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		for _, says := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(field.NewPath("binaryData").Key(key), key, says))
		}
		text, _ := binary[key].(string)
		size += base64.StdEncoding.DecodedLen(len(text))
	}
	if size > mostData {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", mostData))
	}
	return errs
}
