package suite

var ownedScenarios = []scenario{}
