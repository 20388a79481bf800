def build_fusion(): return {}
