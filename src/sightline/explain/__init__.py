"""Why a captioner said a word, or did not say another: over the picture and the words before."""
