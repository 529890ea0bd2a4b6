package validate

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// For Emissary's code: the definition of a custom kind. New code uses
// [apiextensionsv1.CustomResourceDefinition].
//
// A client reads and writes it as it does other Go types that client-go's scheme does not have, if
// its TypeMeta says the kind.
type CustomResourceDefinition = apiextensionsv1.CustomResourceDefinition

// For Emissary's code: conditions of a CustomResourceDefinition. New code uses the constants of
// k8s.io/apiextensions-apiserver, such as [apiextensionsv1.Established].
const (
	NamesAccepted = apiextensionsv1.NamesAccepted
	Established   = apiextensionsv1.Established
	ConditionTrue = apiextensionsv1.ConditionTrue
)
